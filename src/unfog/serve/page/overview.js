// All problems at a glance: what was decided today, what is waited for, and what is wrong.

import * as api from "./api.js";
import { el, put } from "./dom.js";
import { from, number } from "./numbers.js";

const MOST = 2; // alarms of one problem that are read out here
const MANY = 12; // problems that are found without searching

export function make() {
  const counted = el("p", { class: "lead" });
  const sought = el("input", { type: "search", id: "sought", autocomplete: "off" });
  const search = el(
    "p",
    { class: "search", hidden: true },
    el("label", { for: "sought" }, "Find a problem"),
    " ",
    sought,
  );
  const list = el("div");
  const heading = el("h1", { tabindex: "-1" }, "Problems");
  const element = el("div", { class: "view" }, heading, counted, search, list);
  let found = null;
  const show = () => {
    if (found === null) return;
    search.hidden = found.length <= MANY;
    put(counted, summary(found));
    const wanted = sought.value.trim().toLowerCase();
    const rows = found.filter(({ problem }) => problem.name.toLowerCase().includes(wanted)).sort(byNeed);
    put(list, found.length ? listed(rows) : empty());
  };
  sought.addEventListener("input", show);
  const refresh = async () => {
    found = (await api.problems()).problems.map((problem, place) => ({ problem, place }));
    show();
  };
  return { element, heading, title: "Problems", refresh, destroy: () => {} };
}

/** Those that need a look first, then by name. */
function byNeed(one, other) {
  const need = ({ problem }) => (problem.error ? 2 : problem.alarm.length ? 1 : 0);
  return need(other) - need(one) || one.problem.name.localeCompare(other.problem.name);
}

function summary(found) {
  if (!found.length) return "There is none in this store yet.";
  const wrong = found.filter(({ problem }) => problem.error || problem.alarm.length).length;
  const all = [
    el(
      "span",
      { "data-value": String(found.length), "data-from": "count/problems" },
      found.length.toLocaleString("en-GB"),
    ),
    found.length === 1 ? " problem. " : " problems. ",
  ];
  return wrong ? [all, el("strong", {}, "Some need a look.")] : [all, "None has an alarm."];
}

function empty() {
  return el(
    "p",
    { class: "nothing" },
    "Make one with POST /v1/problems or with the command line; the ",
    el("a", { href: "docs" }, "interface"),
    " says how.",
  );
}

function listed(rows) {
  const titles = ["Problem", "Today", "All decisions", "Pending", "Agent", "State"];
  const head = el(
    "tr",
    { role: "row" },
    titles.map((title) => el("th", { scope: "col", role: "columnheader" }, title)),
  );
  const body = rows.map((row) => line(row, titles));
  return el(
    "table",
    { class: "problems", role: "table", "aria-label": "Problems" },
    el("thead", { role: "rowgroup" }, head),
    el("tbody", { role: "rowgroup" }, body),
  );
}

function line({ problem, place }, titles) {
  const count = (field) => number(problem[field], from("problems", "problems", place, field));
  const link = el("a", { href: `#/problem/${encodeURIComponent(problem.name)}` }, problem.name);
  const cells = [
    count("decisions_today"),
    count("decisions"),
    count("pending"),
    problem.agent,
    state(problem),
  ];
  return el(
    "tr",
    { role: "row" },
    el("th", { scope: "row", role: "rowheader" }, link),
    cells.map((cell, i) => el("td", { role: "cell", "data-label": titles[i + 1] }, cell)),
  );
}

function state(problem) {
  if (problem.error) return el("span", { class: "bad" }, problem.error);
  if (!problem.alarm.length) return el("span", { class: "fine" }, "no alarm");
  const more = problem.alarm.length - MOST;
  const said = problem.alarm.slice(0, more > 1 ? MOST : undefined).map((one) => el("li", {}, one));
  return el("ul", { class: "alarm" }, said, more > 1 && el("li", {}, "and other coordinates"));
}
