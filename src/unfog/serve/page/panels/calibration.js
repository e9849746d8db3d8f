// Do rewards fall where they were expected? Intervals and their shares; of rewards of 0 or 1, predicted and observed.

import { el } from "../dom.js";
import { BLUE } from "../look.js";
import { entries, exact, from, number, table } from "../numbers.js";
import { any, panel } from "../panel.js";
import { scatter } from "../scatter.js";

const SETS = [{ name: "found", colour: BLUE }];

export function make() {
  const frame = panel("calibration", "Rewards against what was expected");
  const update = (data) => {
    const found = data.diagnostics;
    const inside = entries("diagnostics", found, "in_bin");
    const binary = inside.some(({ value }) => value > 0);
    if (binary) reliability(frame, found, inside);
    else coverage(frame, found);
    frame.lead(
      el(
        "p",
        {},
        number(found.judged, from("diagnostics", "judged")),
        " rewards were held against what was said of them before, of all units.",
      ),
    );
  };
  return { ...frame, update };
}

function coverage(frame, found) {
  const shares = entries("diagnostics", found, "coverage");
  const levels = found.coordinates.level;
  const ys = shares.map(({ value }) => value ?? NaN);
  if (any(ys)) {
    const make = () =>
      scatter("share of rewards in intervals", {
        across: "level of the interval",
        up: "share inside",
        sets: SETS,
        range: [0, 1],
      });
    frame.plots.of([["coverage", make]])[0].set([{ xs: levels, ys, radius: ys.map(() => 4) }]);
  } else frame.plots.nothing("No reward yet that something was said of.");
  frame.look(
    "Dots should lie on the diagonal. Below it the agent is too sure of what it will earn, above it too unsure.",
  );
  const rows = shares.map(({ value, where }, i) => [
    exact(levels[i], from("diagnostics", "coordinates", "level", i)),
    exact(value, where),
  ]);
  frame.numbers(table("Share of rewards in intervals", ["level", "share inside"], rows));
}

function reliability(frame, found, inside) {
  const [predicted, observed] = ["predicted", "observed"].map((name) => entries("diagnostics", found, name));
  const most = Math.max(...inside.map(({ value }) => value));
  const radius = inside.map(({ value }) => 2.5 + 4.5 * Math.sqrt(value / most));
  const make = () =>
    scatter("rewards of one: predicted and observed", {
      across: "predicted probability",
      up: "observed share",
      sets: SETS,
      range: [0, 1],
    });
  const [xs, ys] = [predicted, observed].map((one) => one.map(({ value }) => value ?? NaN));
  frame.plots.of([["reliability", make]])[0].set([{ xs, ys, radius }]);
  frame.look(
    "Dots should lie on the diagonal; large ones stand for many rewards. Below it the agent promises more than comes, above it less.",
  );
  const rows = predicted.map((one, i) => [
    exact(one.value, one.where),
    exact(observed[i].value, observed[i].where),
    exact(inside[i].value, inside[i].where),
  ]);
  frame.numbers(table("Rewards of one, by the predicted probability", ["predicted", "observed", "rewards"], rows));
}
