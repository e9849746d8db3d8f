// How many rewards come, and how old those are that are waited for.

import { bar, rows } from "../bars.js";
import { el, put } from "../dom.js";
import { entries, exact, from, number, percent, table } from "../numbers.js";
import { panel } from "../panel.js";

const AGES = {
  minute: "under a minute",
  hour: "under an hour",
  day: "under a day",
  week: "under a week",
  longer: "longer",
};
const COUNTS = {
  answered: "rewards in time",
  expired: "no reward in time",
  late: "reports too late",
  cancelled: "cancelled",
  revealed: "true contexts",
  late_contexts: "true contexts too late",
  dropped: "rewards without their true context",
};

export function make() {
  const frame = panel("waiting", "Rewards that come, and that are waited for");
  const update = ({ diagnostics: found, unit }) => {
    const ages = entries("diagnostics", found, "waiting");
    const most = Math.max(1, ...ages.map(({ value }) => value));
    put(
      frame.holder,
      rows(
        ages.map(({ name, value, where }) => [AGES[name] ?? name, bar(value / most), number(value, where)]),
      ),
    );
    frame.lead(el("p", {}, joined(found), unit === null ? null : " That is of all units."));
    frame.look(
      "Most decisions that are waited for should be young. Old ones that pile up, or a share that falls, mean that rewards are lost on their way.",
    );
    const counted = Object.entries(COUNTS).map(([name, words]) => [
      words,
      exact(found[name], from("diagnostics", name)),
    ]);
    frame.numbers(table("Counts, of all units", ["what", "how often"], counted));
  };
  return { ...frame, update };
}

function joined(found) {
  const pending = [
    number(found.pending, from("diagnostics", "pending")),
    " decisions wait for their reward.",
  ];
  if (found.join_rate === null) return [pending];
  return [
    pending,
    " Of those that are settled ",
    percent(found.join_rate, from("diagnostics", "join_rate")),
    " got one in time.",
  ];
}
