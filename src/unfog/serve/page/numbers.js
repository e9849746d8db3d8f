// Numbers as they stand on the page. One function writes them all, and each carries its exact value and where
// in the answers of the service it is from, so that what is shown can be held against what was said.

import { el } from "./dom.js";

const EXACT = 6;

/** A number in words: so many digits, or all of an integer; a dash for what there is not. */
export function words(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  let said;
  if (size >= 1e9 || (size < 1e-4 && size > 0)) said = value.toExponential(digits - 1);
  else if (Number.isInteger(value)) said = value.toLocaleString("en-GB");
  else said = plain(value, Math.max(digits, Math.floor(Math.log10(size)) + 1));
  return said.replaceAll("-", "−");
}

function plain(value, digits) {
  return value.toLocaleString("en-GB", { maximumSignificantDigits: Math.min(digits, 21) });
}

/** Where a value is from: the answer it is in, and the way down to it. */
export function from(...steps) {
  return steps.map((step) => encodeURIComponent(step)).join("/");
}

/** A value of an answer, to be shown. */
export function number(value, where, digits = 3) {
  const exact = value === null || value === undefined || Number.isNaN(value) ? "null" : String(value);
  return el("span", { class: "number", "data-value": exact, "data-from": where }, words(value, digits));
}

/** A share, shown in percent. */
export function percent(value, where) {
  const found = number(value, where);
  found.dataset.scale = "100";
  if (value !== null && value !== undefined) found.textContent = `${words(100 * value)} %`;
  return found;
}

/** The same to six digits, as it stands in tables. */
export function exact(value, where) {
  return number(value, where, EXACT);
}

/** A table; the first cell of a row names it. */
export function table(caption, head, rows) {
  const titles = head.map((title) => el("th", { scope: "col" }, title));
  const lines = rows.map(([first, ...cells]) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, first),
      cells.map((cell) => el("td", {}, cell)),
    ),
  );
  const found = el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, titles)));
  found.append(el("tbody", {}, lines));
  return el("div", { class: "sheet", role: "region", "aria-label": caption, tabindex: "0" }, found);
}

/** Places of at most so many of a list, evenly, the newest first and always among them. */
export function thinned(length, most = 12) {
  const kept = Math.min(length, most);
  return Array.from({ length: kept }, (_, i) =>
    kept === 1 ? length - 1 : Math.round(((length - 1) * (kept - 1 - i)) / (kept - 1)),
  );
}

/** The values of a variable of a data set, in order: what it is called, the value, and where it is from. */
export function entries(answer, data, variable) {
  const values = data[variable];
  if (values === undefined || values === null) return [];
  const names = data.coordinates?.[data.dims?.[variable]?.[0]];
  if (Array.isArray(values)) {
    return values.map((value, i) => ({ name: names?.[i] ?? i, value, where: from(answer, variable, i) }));
  }
  const keys = names?.every((name) => String(name) in values) ? names.map(String) : Object.keys(values);
  return keys.map((key) => ({ name: key, value: values[key], where: from(answer, variable, key) }));
}
