// Drawings that are rows of a list: a share as a bar, an interval as a line with its middle. Lengths are
// percentages, so they need no plot.

import { el, svg } from "./dom.js";

/** A bar of this share of the width. */
export function bar(share, tone = 0) {
  const width = `${100 * Math.min(Math.max(share || 0, 0), 1)}%`;
  return svg(
    "svg",
    { class: "bar", height: 14, "aria-hidden": "true" },
    svg("rect", { class: "track", width: "100%", height: 14, rx: 3 }),
    svg("rect", { class: `c${tone}`, width, height: 14, rx: 3 }),
  );
}

/** An interval with its middle, between two ends of an axis, and a line at zero where that is inside. */
export function whisker({ low, mean, high }, [first, last], tone = 0) {
  const at = (value) => `${2 + (96 * (value - first)) / (last - first)}%`;
  const parts = [svg("line", { class: "track", x1: 0, x2: "100%", y1: 9, y2: 9 })];
  if (first < 0 && last > 0) parts.push(svg("line", { class: "zero", x1: at(0), x2: at(0), y1: 0, y2: 18 }));
  if (low !== null && high !== null) {
    parts.push(svg("line", { class: `c${tone} reach`, x1: at(low), x2: at(high), y1: 9, y2: 9 }));
  }
  if (mean !== null) parts.push(svg("circle", { class: `c${tone}`, cx: at(mean), cy: 9, r: 5 }));
  return svg("svg", { class: "whisker", height: 18, "aria-hidden": "true" }, parts);
}

/** Rows of a name, a drawing and what it says in numbers. */
export function rows(found) {
  return el(
    "ul",
    { class: "rows" },
    found.map(([name, drawing, said]) =>
      el("li", {}, el("span", { class: "name" }, name), drawing, el("span", { class: "said" }, said)),
    ),
  );
}
