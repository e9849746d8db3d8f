// What decisions earned, along decisions, with an interval.

import { el } from "../dom.js";
import { lines } from "../lines.js";
import { BLUE } from "../look.js";
import { entries, exact, from, number, table } from "../numbers.js";
import { along, any, headOf, panel, sampled } from "../panel.js";

const TRACK = ["history", "rewards"];

export function make() {
  const frame = panel("rewards", "Rewards");
  const update = (data) => {
    const found = data.history.rewards;
    if (any(found.mean)) frame.plots.of(wanted(data.time))[0].set(given(found, data));
    else frame.plots.nothing("No reward yet.");
    frame.lead(
      el("p", {}, "Mean of each stretch of decisions; the band is its 95 % interval."),
    );
    frame.look(
      "Rewards should rise while the agent learns, then level off. A rise may also come from outside, a season or other people: compare with a shadow before you believe in it.",
    );
    const columns = ["mean", "low", "high", "count"].map((name) => [name, found[name], [name]]);
    frame.numbers(
      sampled("Along decisions, some stretches", found, TRACK, columns),
      wholly(data.diagnostics),
    );
  };
  return { ...frame, update };
}

const wanted = (time) => [
  [
    `rewards ${time}`,
    () => lines("mean reward", { curves: [{ name: "mean", colour: BLUE, band: true, plain: true }], time }),
  ],
];

function given(found, data) {
  const where = (name, i) => from(...TRACK, name, i);
  const say = (i) => [
    number(found.mean[i], where("mean", i)),
    ", 95 % interval ",
    number(found.low[i], where("low", i)),
    " to ",
    number(found.high[i], where("high", i)),
  ];
  return {
    xs: along(found, data),
    head: headOf(found, TRACK, data),
    curves: [{ values: found.mean, low: found.low, high: found.high, say }],
  };
}

function wholly(found) {
  const columns = ["rewarded", "reward_mean", "reward_error"].map((name) =>
    entries("diagnostics", found, name),
  );
  const rows = columns[0].map(({ name }, i) => [
    name,
    ...columns.map((one) => exact(one[i].value, one[i].where)),
  ]);
  return table("Rewards by arm, of all units", ["arm", "rewards", "mean", "standard error"], rows);
}
