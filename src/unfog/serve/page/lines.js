// Curves along decisions or time, with bands around them, and lines to hold them against. Dragging looks closer,
// a double click shows all again.

import { el, put, svg } from "./dom.js";
import { axis, described, figure, mounted, tick, wide } from "./frame.js";
import { colour, dash, faint, named } from "./look.js";
import { words } from "./numbers.js";

const uPlot = window.uPlot;

/**
 * A plot of so many curves. `curves` are {name, colour, band, plain}; `log` is for values that span decades;
 * `rules` are {at, name}; `range` holds the axis still; `time` says what it runs along.
 */
export function lines(caption, { curves, log = false, rules = [], range = null, time = false }) {
  const place = figure(caption);
  let mount = null;
  let zoomed = false;
  let now = null;
  const options = {
    scales: {
      x: { time },
      y: log ? { distr: 3, range: decades(rules) } : { range: range ? () => range : padded(rules) },
    },
    axes: [
      axis({
        space: 70,
        ...(time ? { values: days } : { values: (_, splits) => splits.map(tick), incrs: whole() }),
      }),
      axis({
        size: wide,
        values: (_, splits) => splits.map(tick),
        ...(log ? { splits: powers, filter: (_, splits) => splits } : {}),
      }),
    ],
    series: [{}, ...curves.flatMap(drawn)],
    bands: curves.flatMap(banded(curves)),
    cursor: {
      y: false,
      points: { size: 7 },
      bind: {
        dblclick: (_, __, handler) => (event) => {
          zoomed = false;
          handler(event);
        },
      },
    },
    hooks: {
      draw: [(plot) => rules.forEach((rule) => ruled(plot, rule))],
      setSelect: [
        (plot) => {
          zoomed ||= plot.select.width > 0;
        },
      ],
      setCursor: [(plot) => now && legend(place, curves, now, plot.cursor.idx)],
    },
  };
  const set = (given) => {
    const same = given.xs === now?.xs && given.curves.every((one, i) => one.values === now.curves[i].values);
    now = given;
    if (same) return; // long lists, seldom new
    const data = [
      given.xs,
      ...given.curves.flatMap((one) => [one.values, ...(one.low ? [one.low, one.high] : [])]),
    ];
    if (mount === null) mount = mounted(place, options, data);
    else {
      mount.plot.setData(data, !zoomed);
      if (zoomed) mount.plot.redraw(true);
    }
    legend(place, curves, given, mount.plot.cursor.idx);
    described(
      place,
      `${caption}. ${curves.map((one, i) => spoken(one.name, given.curves[i].values)).join(" ")}`,
    );
  };
  return { element: place.element, set, destroy: () => mount?.destroy() };
}

/** Only whole steps along decisions. */
const whole = () =>
  [1, 2, 5].flatMap((step) => Array.from({ length: 10 }, (_, i) => step * 10 ** i)).sort((a, b) => a - b);

/** Days, or hours where they are told apart. */
function days(_, splits, __, ___, step) {
  const form = step >= 86_400 ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" };
  return splits.map((value) => new Date(1000 * value).toLocaleString("en-GB", form));
}

function drawn(one) {
  const stroke = () => colour(one.colour);
  const main = {
    stroke,
    width: 1.75,
    dash: one.plain ? [] : dash(one.colour),
    points: { show: false },
    spanGaps: true,
  };
  const edge = { stroke: () => "transparent", width: 0, points: { show: false }, spanGaps: true };
  return one.band ? [main, edge, edge] : [main];
}

const banded = (curves) => (one, i) => {
  if (!one.band) return [];
  const at = 1 + curves.slice(0, i).reduce((sum, other) => sum + (other.band ? 3 : 1), 0);
  return [{ series: [at + 2, at + 1], fill: () => faint(one.colour) }];
};

const padded = (rules) => (_, low, high) => {
  if (low === null) return [0, 1];
  const all = [low, high, ...rules.map((rule) => rule.at)];
  return uPlot.rangeNum(Math.min(...all), Math.max(...all), 0.1, true);
};

const decades = (rules) => (_, low, high) => {
  const all = [...(low === null ? [] : [low, high]), ...rules.map((rule) => rule.at)].filter(
    (value) => value > 0,
  );
  const [first, last] = [Math.floor(Math.log10(Math.min(...all))), Math.ceil(Math.log10(Math.max(...all)))];
  return [10 ** first, 10 ** Math.max(last, first + 1)];
};

/** Some powers of ten between two. */
function powers(_, __, low, high) {
  const [first, last] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const step = Math.max(1, Math.ceil((last - first) / 4));
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => 10 ** (first + i * step));
}

/** A line across, with what it means. */
function ruled(plot, { at, name, alarm }) {
  const { ctx, bbox } = plot;
  const y = plot.valToPos(at, "y", true);
  if (!(y >= bbox.top && y <= bbox.top + bbox.height)) return;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = alarm ? named("warn") : named("soft");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4, 4].map((x) => x * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  if (name) {
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.textBaseline = y - bbox.top < 18 * devicePixelRatio ? "top" : "bottom";
    ctx.fillText(
      name,
      bbox.left + bbox.width - 4,
      y + (ctx.textBaseline === "top" ? 3 : -3) * devicePixelRatio,
    );
  }
  ctx.restore();
}

/** Names, dashes, and the values under the cursor, or else the newest. */
function legend(place, curves, given, index) {
  const here = index === null || index === undefined ? null : index;
  const items = curves.map((one, i) => {
    const at = here ?? newest(given.curves[i].values);
    return el(
      "li",
      {},
      swatch(one),
      el("span", { class: "name" }, one.name),
      " ",
      el("span", {}, at === null ? "–" : given.curves[i].say(at)),
    );
  });
  const where = here === null ? null : el("li", { class: "where" }, given.head(here));
  put(place.legend, items, where);
}

function swatch(one) {
  const dashes = one.plain ? "" : dash(one.colour).join(" ");
  const line = svg("line", {
    x1: 0,
    x2: 22,
    y1: 5,
    y2: 5,
    class: `c${one.colour % 8}`,
    "stroke-dasharray": dashes || null,
  });
  return svg("svg", { width: 22, height: 10, class: "swatch", "aria-hidden": "true" }, line);
}

function newest(values) {
  for (let i = values.length - 1; i >= 0; i -= 1)
    if (values[i] !== null && !Number.isNaN(values[i])) return i;
  return null;
}

function spoken(name, values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low && value !== null) low = value;
    if (value > high && value !== null) high = value;
  }
  const last = newest(values);
  return last === null
    ? `${name}: nothing yet.`
    : `${name}: from ${words(low)} to ${words(high)}, now ${words(values[last])}.`;
}
