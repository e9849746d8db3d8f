// Are readings what the channel says they should be? Their spread of late, and the evidence against the channel.

import { el } from "../dom.js";
import { lines } from "../lines.js";
import { GREY } from "../look.js";
import { entries, exact, from, number, table } from "../numbers.js";
import { along, any, headOf, panel, sampled } from "../panel.js";

const TRACK = ["history", "tracks"];
const ALL = "all together";

export function make() {
  const frame = panel("innovations", "Readings against the channel");
  const update = (data) => {
    const { tracks } = data.history;
    const shown = data.shown.filter((name) => any(tracks.z_square?.[name]));
    const plots = frame.plots.of(shown.length ? wanted(shown, data) : []);
    if (plots.length) {
      plots[0].set(spread(shown, tracks, data));
      plots[1]?.set(evidence(shown, tracks, data));
    } else
      frame.plots.nothing(
        data.unit === null
          ? "This agent expects nothing of readings."
          : "Readings are watched for all units together: choose all units to see them.",
      );
    frame.lead(lead(data.diagnostics));
    frame.look(
      "Upper plot: near one is as told; twice that is noise or a spread of contexts larger than told, a half is smaller. Lower plot: beyond the dashed line the alarm is raised. Where all is as told that happens in at most one problem of forty, however long one looks.",
    );
    frame.numbers(
      shown.length ? sampled("Along decisions, some of them", tracks, TRACK, columns(shown, tracks)) : null,
      wholly(data.diagnostics),
    );
  };
  return { ...frame, update };
}

function wanted(shown, data) {
  const kind = `${data.time} ${data.diagnostics.alarm_at} ${shown.join(" ")}`;
  const curves = shown.map((name) => ({ name, colour: data.place(name) }));
  const alarm = [{ at: data.diagnostics.alarm_at, name: "alarm", alarm: true }];
  const both = [...curves, { name: ALL, colour: GREY, plain: true }];
  const spreads = () =>
    lines("mean square of late, in variances as told", {
      curves,
      rules: [{ at: 1, name: "as told" }],
      time: data.time,
    });
  const evidences = () =>
    lines("evidence against the channel", { curves: both, log: true, rules: alarm, time: data.time });
  const plots = [[`spread ${kind}`, spreads]];
  return isTested(data) ? [...plots, [`evidence ${kind}`, evidences]] : plots;
}

/** Agents that learn the moments of readings from the same readings are not tested. */
const isTested = (data) => data.diagnostics.e_value_of_all !== null;

const curve = (values, path) => ({ values, say: (i) => number(values[i], from(...TRACK, ...path, i)) });

function spread(shown, tracks, data) {
  const curves = shown.map((name) => curve(tracks.z_square[name], ["z_square", name]));
  return { xs: along(tracks, data), head: headOf(tracks, TRACK, data), curves };
}

function evidence(shown, tracks, data) {
  const curves = shown.map((name) => curve(tracks.e_value[name], ["e_value", name]));
  curves.push(curve(tracks.e_value_of_all, ["e_value_of_all"]));
  return { xs: along(tracks, data), head: headOf(tracks, TRACK, data), curves };
}

function lead(found) {
  if (found.e_value_of_all === null) return null;
  if (!found.alarm.length) return el("p", { class: "fine" }, "No alarm: readings are as the channel says.");
  const first = el(
    "p",
    {},
    "The alarm was first raised after ",
    number(found.alarmed, from("diagnostics", "alarmed")),
    " readings.",
  );
  return [
    el(
      "ul",
      { class: "alarm" },
      found.alarm.map((said) => el("li", {}, said)),
    ),
    first,
  ];
}

function columns(shown, tracks) {
  return [
    ...shown.map((name) => [`${name}, mean square`, tracks.z_square[name], ["z_square", name]]),
    ...shown.map((name) => [`${name}, evidence`, tracks.e_value[name], ["e_value", name]]),
    [`${ALL}, evidence`, tracks.e_value_of_all, ["e_value_of_all"]],
  ];
}

function wholly(found) {
  const names = ["readings", "z_mean", "z_mean_square", "z_mean_square_lately", "e_value"];
  const columns = names.map((name) => entries("diagnostics", found, name));
  const rows = columns[0].map(({ name }, i) => [
    name,
    ...columns.map((one) => exact(one[i].value, one[i].where)),
  ]);
  const alarm = el(
    "p",
    {},
    "Evidence of all together ",
    exact(found.e_value_of_all, from("diagnostics", "e_value_of_all")),
    "; the alarm is at ",
    exact(found.alarm_at, from("diagnostics", "alarm_at")),
    ".",
  );
  return [
    table(
      "Readings by coordinate, of all units, in deviations as told",
      ["coordinate", "readings", "mean", "mean square", "of late", "evidence"],
      rows,
    ),
    alarm,
  ];
}
