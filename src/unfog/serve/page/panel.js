// A panel: a title, a first sentence with the numbers that matter, plots, a sentence that says what to look for,
// and the numbers themselves behind a disclosure.

import { el, put } from "./dom.js";
import { Plots } from "./frame.js";
import { exact, from, number, table, thinned } from "./numbers.js";

/** The frame of a panel, and the places that its owner fills. */
export function panel(id, title, { broad = false } = {}) {
  const lead = el("div", { class: "lead" });
  const holder = el("div", { class: "plots" });
  const look = el("p", { class: "look" });
  const numbers = el("div", { class: "numbers" });
  const summary = el("summary", {}, "Numbers", el("span", { class: "unseen" }, ` of: ${title}`));
  const heading = el("h2", { id: `${id}-title` }, title);
  const shell = { class: broad ? "panel broad" : "panel", id, "aria-labelledby": `${id}-title` };
  const element = el("section", shell, heading, lead, holder, look, el("details", {}, summary, numbers));
  const plots = new Plots(holder);
  return {
    element,
    plots,
    holder,
    lead: (...children) => put(lead, ...children),
    look: (said) => put(look, said),
    numbers: (...children) => put(numbers, ...children),
    destroy: () => plots.destroy(),
  };
}

/** Where along a track its samples are: numbers of decisions, or times. */
export const along = (track, data) => (data.time ? track.time : track.number);

/** The decision, or the moment, that a sample is of. */
export function headOf(track, where, data) {
  return (i) => [...position(track, where, data)(i)];
}

function position(track, where, data) {
  if (!data.time) return (i) => ["decision ", number(track.number[i], from(...where, "number", i))];
  return (i) => [moment(track.time[i], from(...where, "time", i))];
}

/** A time in words. */
export function moment(seconds, where) {
  const said = new Date(1000 * seconds).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  return el("time", { "data-value": String(seconds), "data-from": where }, said);
}

/** A table of some samples of a track, the newest first: `columns` are [title, values, where] triples. */
export function sampled(caption, track, where, columns) {
  const rows = thinned(track.number.length).map((i) => [
    exact(track.number[i], from(...where, "number", i)),
    ...columns.map(([, values, path]) => exact(values[i], from(...where, ...path, i))),
  ]);
  return table(caption, ["decision", ...columns.map(([title]) => title)], rows);
}

/** Whether there is any value in a list. */
export const any = (values) => Boolean(values?.some((value) => value !== null && !Number.isNaN(value)));
