// What all plots share: a figure with its caption and legend, axes, colours of the day, and the width there is.

import { el, put } from "./dom.js";
import { named, whenChanged } from "./look.js";
import { words } from "./numbers.js";

const uPlot = window.uPlot;
const HEIGHT = 180;
const FONT = "12px system-ui, sans-serif";
const LETTER = 7; // pixels
const HALF = 28; // pixels: half of a tick as long as 100,000, which may stand at the very end of an axis
const alive = new Set();

whenChanged(() => alive.forEach((plot) => plot.redraw(true)));

/** Short words for an axis. */
export function tick(value) {
  if (value === null) return "";
  const size = Math.abs(value);
  if (size >= 1e6 || (size < 1e-3 && size > 0)) return value.toExponential(0).replace("e+", "e");
  return words(value, 4);
}

/** An axis, in the colours of the day. */
export function axis(more = {}) {
  const quiet = () => named("grid");
  return {
    stroke: () => named("soft"),
    font: FONT,
    grid: { stroke: quiet, width: 1 },
    ticks: { stroke: quiet, width: 1, size: 4 },
    border: { show: false },
    gap: 4,
    size: 28,
    ...more,
  };
}

/** Wide enough for the longest words beside it. */
export function wide(plot, said) {
  const longest = Math.max(3, ...(said ?? []).map((one) => one.length));
  return longest * LETTER + 14;
}

/** Where a plot goes: caption, legend, and the drawing, which says in words what it shows. */
export function figure(caption) {
  const title = el("figcaption", {}, caption);
  const legend = el("ul", { class: "legend" });
  const drawing = el("div", { class: "drawing", role: "img" });
  return { element: el("figure", {}, title, legend, drawing), legend, drawing };
}

/** A plot of uPlot in a figure: it keeps the figure's width, and its colours follow the day. */
export function mounted(place, options, data, height = HEIGHT) {
  const size = { width: Math.max(place.drawing.clientWidth, 120), height };
  const bare = { legend: { show: false }, padding: [8, HALF, 0, 0] };
  const plot = new uPlot({ ...bare, ...size, ...options }, data, place.drawing);
  const watch = new ResizeObserver(([{ contentRect }]) => {
    const width = Math.floor(contentRect.width);
    if (width > 0 && width !== plot.width) plot.setSize({ width, height });
  });
  watch.observe(place.drawing);
  alive.add(plot);
  const destroy = () => {
    watch.disconnect();
    alive.delete(plot);
    plot.destroy();
  };
  return { plot, destroy };
}

/** The drawing in words, for those who do not see it. */
export function described(place, said) {
  if (place.drawing.getAttribute("aria-label") !== said) place.drawing.setAttribute("aria-label", said);
}

/** Plots that are made anew only when what they are of changes: `wanted` are [key, make] pairs. */
export class Plots {
  constructor(holder) {
    this.holder = holder;
    this.found = new Map();
  }

  /** The plots of these keys, in this order. */
  of(wanted) {
    const keys = new Set(wanted.map(([key]) => key));
    for (const [key, one] of this.found) {
      if (keys.has(key)) continue;
      one.destroy();
      one.element.remove();
      this.found.delete(key);
    }
    if (wanted.length) this.holder.querySelector(":scope > .nothing")?.remove();
    return wanted.map(([key, make], i) => {
      if (!this.found.has(key)) this.found.set(key, make());
      const one = this.found.get(key);
      if (this.holder.children[i] !== one.element)
        this.holder.insertBefore(one.element, this.holder.children[i] ?? null);
      return one;
    });
  }

  /** No plot, but why. */
  nothing(why) {
    this.of([]);
    put(this.holder, el("p", { class: "nothing" }, why));
  }

  destroy() {
    this.of([]);
  }
}
