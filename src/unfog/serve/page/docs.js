// The description of the service, /openapi.json, for people: what can be asked, with which fields, and what is
// answered.

import { get } from "./api.js";
import { el, put } from "./dom.js";
import { fieldsOf, kindOf, sampleOf } from "./schemas.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const place = document.getElementById("interface");

/** Operations by their first tag, or else by what their path begins with. */
function grouped({ paths }) {
  const found = new Map();
  for (const [path, methods] of Object.entries(paths)) {
    for (const method of METHODS.filter((one) => one in methods)) {
      const name = methods[method].tags?.[0] ?? (path.includes("{name}") ? "One problem" : "The service");
      found.set(name, [
        ...(found.get(name) ?? []),
        { path, method, ...methods[method], shared: methods.parameters },
      ]);
    }
  }
  return [...found];
}

function group(name, operations, whole) {
  return el(
    "section",
    { class: "group" },
    el("h2", {}, name),
    operations.map((one) => operation(one, whole)),
  );
}

function operation(one, whole) {
  const head = el(
    "summary",
    {},
    el("span", { class: `method ${one.method}` }, one.method.toUpperCase()),
    el("span", { class: "path" }, one.path),
    el("span", { class: "said" }, one.summary ?? ""),
  );
  const parts = [described(one), parameters(one, whole), body(one, whole), answers(one, whole)];
  return el(
    "details",
    { class: "operation", id: one.operationId },
    head,
    el("div", { class: "inside" }, parts),
  );
}

function described(one) {
  const said = (one.description ?? "").replace(one.summary ?? "", "").trim();
  return said && el("p", {}, marked(said));
}

/** Text in which `names` stand out. */
function marked(text) {
  return text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));
}

function resolved(one, whole) {
  return one.$ref
    ? one.$ref
        .slice(2)
        .split("/")
        .reduce((found, step) => found?.[step], whole)
    : one;
}

function parameters(one, whole) {
  const found = [...(one.shared ?? []), ...(one.parameters ?? [])].map((given) => resolved(given, whole));
  if (!found.length) return null;
  const rows = found.map((given) => ({
    name: given.name,
    kind: `${kindOf(given.schema ?? {}, whole)}, in the ${given.in}`,
    said: given.description ?? "",
    must: given.required,
  }));
  return section("Asked with", sheet(rows));
}

function body(one, whole) {
  if (!one.requestBody) return null;
  const [[kind, media]] = Object.entries(resolved(one.requestBody, whole).content);
  return section(`Body, ${kind}`, contents(media, whole));
}

/** Fields of a body, and an example: the one that is given, or one made of the fields. */
function contents(media, whole) {
  const fields = fieldsOf(media.schema ?? {}, whole);
  const samples = given(media, whole);
  const shown = samples.length
    ? samples
    : [sampleOf(media.schema ?? {}, whole)].filter((one) => one !== null);
  return [fields.length ? sheet(fields) : null, shown.map(example)];
}

function given(media, whole) {
  if (media.example !== undefined) return [media.example];
  return Object.values(media.examples ?? {}).map((one) => resolved(one, whole).value);
}

function example(one) {
  const text = typeof one === "string" ? one : JSON.stringify(one, null, 2);
  return el("pre", { tabindex: "0", "aria-label": "example" }, text);
}

function answers(one, whole) {
  const rows = Object.entries(one.responses ?? {}).map(([status, given]) => ({
    name: status,
    kind: resolved(given, whole).description ?? "",
    said: "",
  }));
  const done = resolved(one.responses?.["200"] ?? one.responses?.["201"] ?? {}, whole);
  const media = Object.values(done.content ?? {})[0];
  return [
    section("Answers", sheet(rows, false)),
    media ? section("An answer that went well", answered(media, whole)) : null,
  ];
}

/** Fields of an answer; an example of it only where one is given. */
function answered(media, whole) {
  const fields = fieldsOf(media.schema ?? {}, whole).map((field) => ({ ...field, must: false }));
  return [fields.length ? sheet(fields) : null, given(media, whole).map(example)];
}

const section = (title, ...parts) => el("div", {}, el("h3", {}, title), parts);

function sheet(rows, three = true) {
  const titles = three ? ["field", "what it is", "meaning"] : ["status", "meaning"];
  const lines = rows.map(({ name, kind, said, must }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("code", {}, name), must && el("span", { class: "must" }, " needed")),
      el("td", {}, marked(kind)),
      three && el("td", {}, marked(said)),
    ),
  );
  return el(
    "table",
    { class: "fields" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        titles.map((title) => el("th", { scope: "col" }, title)),
      ),
    ),
    el("tbody", {}, lines),
  );
}

try {
  const found = await get("openapi.json");
  document.title = `Interface · ${found.info.title}`;
  put(
    place,
    el(
      "p",
      { class: "about" },
      found.info.description ?? "What this service can be asked.",
      " The same for programs: ",
      el("a", { href: "openapi.json" }, "openapi.json"),
      ".",
    ),
    grouped(found).map(([name, those]) => group(name, those, found)),
  );
} catch (error) {
  put(place, el("p", { class: "wrong", role: "alert" }, `The description did not come: ${error.message}`));
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
