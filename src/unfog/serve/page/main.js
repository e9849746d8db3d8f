// The page: which view is shown, asking the service again and again, and what to do when it says no.

import * as api from "./api.js";
import { key, NotAnsweringError, ServiceError } from "./api.js";
import { el, put } from "./dom.js";
import * as overview from "./overview.js";
import * as problem from "./problem.js";
import { status } from "./status.js";

const PAUSE = 2000; // milliseconds between an answer and the next question
const main = document.getElementById("main");
const door = document.getElementById("door");
const forget = document.getElementById("forget");
const service = status(document.getElementById("status"));

let view = null;
let shown = null; // what the view is of
let timer = null;
let turn = 0;

/** What the address asks for. */
function asked() {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const given = new URLSearchParams(query ?? "");
  const found = path.match(/^\/problem\/(.+)$/);
  const chosen = {
    unit: given.get("unit"),
    along: given.get("along") === "time" ? "time" : "number",
    group: Number(given.get("group") ?? 0) || 0,
    all: given.get("points") === "all",
  };
  const name = found ? decoded(found[1]) : null;
  const unknown = name === null && path !== "" && path !== "/" ? path : null;
  return { name, unknown, chosen };
}

/** A part of the address in words; null where it cannot be read. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

/** There is no such view. */
function nowhere(path) {
  const heading = el("h1", { tabindex: "-1" }, "No such page");
  const way = el("a", { href: "#/" }, "All problems");
  const element = el(
    "div",
    { class: "view" },
    heading,
    el("p", {}, `There is nothing at #${path}. The address of a problem is #/problem/NAME.`),
    el("p", {}, way),
  );
  return { element, heading, title: "No such page", refresh: api.problems, destroy: () => {} };
}

/** Go where other choices lead; the address says them all, so that it can be passed on. */
function navigate(change) {
  const { name, chosen } = asked();
  const next = { ...chosen, ...change };
  const given = new URLSearchParams();
  if (next.unit !== null) given.set("unit", next.unit);
  if (next.along === "time") given.set("along", "time");
  if (next.group) given.set("group", String(next.group));
  if (next.all) given.set("points", "all");
  location.hash = `#/problem/${encodeURIComponent(name)}${given.size ? `?${given}` : ""}`;
}

function route(first) {
  const { name, unknown, chosen } = asked();
  const wanted = unknown === null ? name : { unknown };
  if (view !== null && shown === wanted) view.choose?.(chosen);
  else {
    view?.destroy();
    if (unknown !== null) view = nowhere(unknown);
    else view = name === null ? overview.make() : problem.make(name, chosen, navigate);
    shown = wanted;
    main.replaceChildren(view.element, el("p", { class: "wrong", id: "trouble", role: "alert" }));
    document.title = `${view.title} · unfog`;
    if (!first) {
      view.heading.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
  }
  ask();
}

/** Ask once, show it, and ask again after a while; an older question that comes back late is dropped. */
async function ask() {
  clearTimeout(timer);
  turn += 1;
  const mine = turn;
  try {
    await view.refresh();
    if (mine !== turn) return;
    service.answered();
    trouble("");
    open(false);
  } catch (error) {
    if (mine !== turn) return;
    if (!(error instanceof NotAnsweringError || error instanceof ServiceError)) throw error;
    refused(error);
  }
  if (!document.hidden && !door.open) timer = setTimeout(ask, PAUSE);
}

function refused(error) {
  if (error instanceof NotAnsweringError) service.failed("The service does not answer");
  else if (error.status === 401) open(true);
  else if (error.status >= 500) service.failed(`Not now: ${error.message}`);
  else {
    service.answered();
    open(false);
    trouble(error.status === 403 ? `This key may not read here: ${error.message}` : error.message);
  }
}

function trouble(said) {
  put(document.getElementById("trouble"), said);
}

/** Ask for a key, or no more. */
function open(wanted) {
  forget.hidden = !key.get();
  if (!wanted) {
    if (door.open) {
      document.getElementById("key").value = "";
      door.close();
    }
    return;
  }
  put(document.getElementById("door-word"), key.get() ? "The service does not know this key." : "");
  key.forget();
  forget.hidden = true;
  if (!door.open) door.showModal();
  document.getElementById("key").select();
}

document.getElementById("door-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key.set(document.getElementById("key").value.trim());
  ask();
});
door.addEventListener("cancel", (event) => event.preventDefault());
forget.addEventListener("click", () => {
  key.forget();
  forget.hidden = true;
  ask();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : ask()));
addEventListener("hashchange", () => route(false));
route(true);
