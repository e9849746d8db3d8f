// What was read against what was believed, and both against the truth once it came.

import { el } from "../dom.js";
import { BLUE, ORANGE } from "../look.js";
import { entries, exact, from, number, table, thinned } from "../numbers.js";
import { any, panel } from "../panel.js";
import { scatter } from "../scatter.js";

const READ = [{ name: "decision", colour: BLUE }];
const HELD = [
  { name: "as read", colour: ORANGE },
  { name: "denoised", colour: BLUE },
];

export function make() {
  const frame = panel("denoising", "What denoising is worth", { broad: true });
  const update = (data) => {
    const { points, worth, decisions } = data.history;
    if (!decisions) frame.plots.nothing("No decision yet.");
    else draw(frame, data.shown, points);
    frame.lead(
      el(
        "ul",
        { class: "plain" },
        data.shown.map((name) => el("li", {}, said(name, worth[name]))),
      ),
    );
    frame.look(
      "Read and denoised: where a dot lies off the diagonal, denoising moved the reading. Against the truth, once it came: blue should lie closer to the diagonal than orange, and orange to one side of it is a bias.",
    );
    frame.numbers(worths(data), latest(data));
  };
  return { ...frame, update };
}

function draw(frame, shown, points) {
  const wanted = shown.flatMap((name) => {
    const [noisy, denoised, truth] = [points.noisy[name], points.denoised[name], points.true[name]];
    const read = () =>
      scatter(`${name}: read and denoised`, { across: "as read", up: "denoised", sets: READ });
    const held = () =>
      scatter(`${name}: against the truth`, { across: "true", up: "as read, denoised", sets: HELD });
    const found = [[`read ${name}`, read, [{ xs: noisy, ys: denoised }]]];
    if (any(truth))
      found.push([
        `true ${name}`,
        held,
        [
          { xs: truth, ys: noisy },
          { xs: truth, ys: denoised },
        ],
      ]);
    return found;
  });
  frame.plots.of(wanted).forEach((plot, i) => plot.set(wanted[i][2]));
}

/** What became of the error, in words. */
function said(name, found) {
  const lead = el("strong", {}, name);
  if (!found?.revealed || found.ratio === null)
    return [lead, ": no true context has come yet that a reading could be held against."];
  const where = (field) => from("history", "worth", name, field);
  const [ratio, noisy, denoised, revealed] = ["ratio", "rmse_noisy", "rmse_denoised", "revealed"].map(
    (field) => number(found[field], where(field)),
  );
  const words =
    found.ratio <= 1
      ? [": denoising leaves ", ratio, " of the error"]
      : [": denoising makes the error ", ratio, " times as large"];
  return [
    lead,
    words,
    " (",
    denoised,
    " instead of ",
    noisy,
    ", root mean square over ",
    revealed,
    " true contexts).",
  ];
}

function worths({ history, diagnostics }) {
  const cover = Object.fromEntries(
    entries("diagnostics", diagnostics, "context_coverage").map((one) => [one.name, one]),
  );
  const fields = ["revealed", "rmse_noisy", "rmse_denoised", "ratio"];
  const rows = history.coordinates.map((name) => [
    name,
    ...fields.map((field) => exact(history.worth[name]?.[field], from("history", "worth", name, field))),
    cover[name] ? exact(cover[name].value, cover[name].where) : "–",
  ]);
  return table(
    "Errors against true contexts; the last column is of all units",
    [
      "coordinate",
      "true contexts",
      "error as read",
      "error denoised",
      "ratio",
      "share in the 90 % interval",
    ],
    rows,
  );
}

function latest({ history: { points }, shown }) {
  const kinds = ["noisy", "denoised", "sd", "true"];
  const rows = thinned(points.number.length).map((i) => [
    exact(points.number[i], from("history", "points", "number", i)),
    ...shown.flatMap((name) =>
      kinds.map((kind) => exact(points[kind][name]?.[i], from("history", "points", kind, name, i))),
    ),
  ]);
  return table(
    "Decisions, some of those drawn",
    [
      "decision",
      ...shown.flatMap((name) => kinds.map((kind) => `${name}, ${kind === "noisy" ? "read" : kind}`)),
    ],
    rows,
  );
}
