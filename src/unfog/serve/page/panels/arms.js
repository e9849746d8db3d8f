// Which arms are taken, and how small the smallest probability is.

import { el } from "../dom.js";
import { lines } from "../lines.js";
import { BLUE } from "../look.js";
import { entries, exact, from, number, table } from "../numbers.js";
import { along, headOf, panel, sampled } from "../panel.js";

const SHARES = ["history", "shares"];
const POINTS = ["history", "points"];
const MOST = 8; // arms that are drawn

export function make() {
  const frame = panel("arms", "Arms that were taken");
  const update = (data) => {
    const { shares, points } = data.history;
    const shown = data.history.arms.filter((name) => shares.arms[name]).slice(0, MOST);
    if (!shares.number.length) frame.plots.nothing("No decision yet.");
    else {
      const [share, lowest] = frame.plots.of(wanted(shown, data.time));
      share.set(taken(shown, shares, data));
      lowest.set(smallest(points, data));
    }
    frame.lead(lead(data));
    frame.look(
      "Shares move while the agent learns, and settle. The smallest probability should stay above nothing: an arm that is never taken is never learnt of, and the log cannot say what it would have earned.",
    );
    const columns = shown.map((name) => [name, shares.arms[name], ["arms", name]]);
    frame.numbers(sampled("Shares along decisions, some of them", shares, SHARES, columns), wholly(data));
  };
  return { ...frame, update };
}

const wanted = (shown, time) => [
  [
    `share ${time} ${shown.join(" ")}`,
    () =>
      lines("share of decisions", {
        curves: shown.map((name, i) => ({ name, colour: i })),
        range: [0, 1],
        time,
      }),
  ],
  [
    `lowest ${time}`,
    () =>
      lines("smallest probability of an arm", {
        curves: [{ name: "smallest", colour: BLUE, plain: true }],
        rules: [{ at: 0 }],
        time,
      }),
  ],
];

function taken(shown, shares, data) {
  const curves = shown.map((name) => ({
    values: shares.arms[name],
    say: (i) => number(shares.arms[name][i], from(...SHARES, "arms", name, i)),
  }));
  return { xs: along(shares, data), head: headOf(shares, SHARES, data), curves };
}

function smallest(points, data) {
  const say = (i) => number(points.lowest[i], from(...POINTS, "lowest", i));
  return {
    xs: along(points, data),
    head: headOf(points, POINTS, data),
    curves: [{ values: points.lowest, say }],
  };
}

function lead({ problem, history }) {
  const more = history.arms.length > MOST ? " The first eight are drawn; all are in the numbers." : "";
  const retired = problem.retired?.length ? ` Retired: ${problem.retired.join(", ")}.` : "";
  return el(
    "p",
    {},
    `Available: ${problem.arms.join(", ") || "those that come with each decision"}.${retired}${more}`,
  );
}

function wholly({ diagnostics }) {
  const names = ["chosen", "share"];
  const columns = names.map((name) => entries("diagnostics", diagnostics, name));
  const rows = columns[0].map(({ name }, i) => [
    name,
    ...columns.map((one) => exact(one[i].value, one[i].where)),
  ]);
  return table("Arms, of all units", ["arm", "chosen", "share"], rows);
}
