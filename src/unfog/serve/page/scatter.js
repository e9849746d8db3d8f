// Points against a diagonal. Many points are counted by cells of the drawing and shaded: 200,000 take no longer
// than the cells there are, and what lies on top of each other is seen.

import { el, put, svg } from "./dom.js";
import { axis, described, figure, mounted, tick, wide } from "./frame.js";
import { colour, named } from "./look.js";
import { words } from "./numbers.js";

const HEIGHT = 250;
const FEW = 3000; // points that are drawn one by one
const CELL = 2; // pixels
const SHADE = 0.45; // of a point in a cell

/** A plot of sets of points; `across` and `up` say what the axes are; `range` holds them still. */
export function scatter(caption, { across, up, sets, range = null }) {
  const place = figure(caption);
  let mount = null;
  let now = null;
  const label = (text) => ({
    label: text,
    labelFont: "12px system-ui, sans-serif",
    labelSize: 18,
    labelGap: 0,
  });
  const both = (_, low, high) => [low, high];
  const options = {
    scales: { x: { time: false, range: both }, y: { range: both } },
    axes: [
      axis({ ...label(across), space: 60, size: 28, values: (_, splits) => splits.map(tick) }),
      axis({ ...label(up), size: wide, values: (_, splits) => splits.map(tick) }),
    ],
    series: [{}, { stroke: () => named("soft"), width: 1, dash: [4, 4], points: { show: false } }],
    cursor: { show: false },
    hooks: { draw: [(plot) => now.forEach((one, i) => dotted(plot, one, sets[i].colour))] },
  };
  const set = (given) => {
    if (given.every(({ xs, ys }, i) => xs === now?.[i].xs && ys === now[i].ys)) return; // long lists, seldom new
    now = given;
    const ends = range ?? extent(given);
    if (mount === null) mount = mounted(place, options, [ends, ends], HEIGHT);
    else mount.plot.setData([ends, ends]);
    put(place.legend, sets.length > 1 ? sets.map(entry) : []);
    described(
      place,
      `${caption}. ${sets.map((one, i) => `${one.name}: ${words(counted(given[i]))} points.`).join(" ")}`,
    );
  };
  return { element: place.element, set, destroy: () => mount?.destroy() };
}

function entry(one) {
  const dot = svg("circle", { cx: 5, cy: 5, r: 4, class: `c${one.colour}` });
  return el(
    "li",
    {},
    svg("svg", { width: 10, height: 10, class: "swatch dot", "aria-hidden": "true" }, dot),
    el("span", { class: "name" }, one.name),
  );
}

/** From the smallest to the largest of all, and a little more. */
function extent(given) {
  let [low, high] = [Infinity, -Infinity];
  for (const { xs, ys } of given) {
    for (let i = 0; i < xs.length; i += 1) {
      if (Number.isNaN(xs[i] + ys[i])) continue;
      low = Math.min(low, xs[i], ys[i]);
      high = Math.max(high, xs[i], ys[i]);
    }
  }
  if (low > high) return [0, 1];
  const margin = 0.04 * (high - low) || 0.5;
  return [low - margin, high + margin];
}

function counted({ xs, ys }) {
  let found = 0;
  for (let i = 0; i < xs.length; i += 1) if (!Number.isNaN(xs[i] + ys[i])) found += 1;
  return found;
}

function dotted(plot, given, tone) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour(tone);
  if (given.xs.length <= FEW) circles(plot, given);
  else shaded(plot, given);
  ctx.restore();
}

/** How a value becomes a place: the ends of the axes and of the drawing. */
function places(plot) {
  const { bbox, scales } = plot;
  const [x0, x1, y0, y1] = [scales.x.min, scales.x.max, scales.y.min, scales.y.max];
  return { sx: bbox.width / (x1 - x0), sy: bbox.height / (y1 - y0), x0, y1, left: bbox.left, top: bbox.top };
}

function circles(plot, { xs, ys, radius = null }) {
  const { sx, sy, x0, y1, left, top } = places(plot);
  const { ctx } = plot;
  ctx.globalAlpha = radius ? 1 : xs.length > 400 ? 0.4 : 0.65;
  for (let i = 0; i < xs.length; i += 1) {
    if (Number.isNaN(xs[i] + ys[i])) continue;
    ctx.beginPath();
    ctx.arc(
      left + (xs[i] - x0) * sx,
      top + (y1 - ys[i]) * sy,
      (radius?.[i] ?? 2) * devicePixelRatio,
      0,
      2 * Math.PI,
    );
    ctx.fill();
  }
}

function shaded(plot, { xs, ys }) {
  const { sx, sy, x0, y1, left, top } = places(plot);
  const { ctx, bbox } = plot;
  const size = CELL * devicePixelRatio;
  const [columns, rows] = [Math.ceil(bbox.width / size), Math.ceil(bbox.height / size)];
  const counts = new Uint32Array(columns * rows);
  for (let i = 0; i < xs.length; i += 1) {
    const [column, row] = [Math.floor(((xs[i] - x0) * sx) / size), Math.floor(((y1 - ys[i]) * sy) / size)];
    if (column >= 0 && column < columns && row >= 0 && row < rows) counts[row * columns + column] += 1;
  }
  const most = Math.log1p(counts.reduce((a, b) => Math.max(a, b), 1));
  counts.forEach((count, cell) => {
    if (count === 0) return;
    ctx.globalAlpha = SHADE + (1 - SHADE) * (Math.log1p(count) / most);
    ctx.fillRect(left + (cell % columns) * size, top + Math.floor(cell / columns) * size, size, size);
  });
}
