// What is believed of the bias, along decisions, with its 95 % interval.

import { lines } from "../lines.js";
import { BLUE } from "../look.js";
import { el } from "../dom.js";
import { entries, exact, from, number, table } from "../numbers.js";
import { along, any, headOf, panel, sampled } from "../panel.js";

const TRACK = ["history", "tracks"];

export function make() {
  const frame = panel("bias", "Bias of the sensor, as believed");
  const update = (data) => {
    const { tracks } = data.history;
    const shown = data.shown.filter((name) => any(tracks.bias?.[name]));
    const kind = data.time ? "time" : "number";
    const plots = frame.plots.of(shown.map((name) => [`${name} ${kind}`, () => curve(name, data.time)]));
    plots.forEach((plot, i) => plot.set(given(shown[i], tracks, data)));
    if (!shown.length)
      frame.plots.nothing("Nothing is believed of a bias: this agent learns none, or nothing was read yet.");
    frame.lead(el("p", {}, whose(data)));
    frame.look(look(data));
    frame.numbers(numbers(shown, tracks, data));
  };
  return { ...frame, update };
}

const curve = (name, time) =>
  lines(name, {
    curves: [{ name: "bias", colour: BLUE, band: true, plain: true }],
    rules: [{ at: 0 }],
    time,
  });

function given(name, tracks, data) {
  const [mean, sd] = [tracks.bias[name], tracks.bias_sd[name]];
  const edge = (sign) =>
    mean.map((value, i) => (value === null || sd[i] === null ? null : value + sign * 2 * sd[i]));
  const say = (i) => [
    number(mean[i], from(...TRACK, "bias", name, i)),
    " (sd ",
    number(sd[i], from(...TRACK, "bias_sd", name, i)),
    ")",
  ];
  return {
    xs: along(tracks, data),
    head: headOf(tracks, TRACK, data),
    curves: [{ values: mean, low: edge(-1), high: edge(1), say }],
  };
}

function whose({ unit, diagnostics }) {
  const said = unit === null ? diagnostics.bias_label || "the sensor" : `unit ${unit}`;
  return `${said[0].toUpperCase()}${said.slice(1)}.`;
}

function look({ unit, diagnostics }) {
  const many =
    unit === null && Object.values(diagnostics.bias_units_sd ?? {}).some((value) => value !== null);
  const band = many
    ? "The band is the 95 % interval of one unit: two standard deviations on either side."
    : "The band is its 95 % interval: two standard deviations on either side.";
  return `${band} Look for a line that settles and a band that narrows. A line that keeps moving is a sensor that drifts, or contexts whose mean does: without true contexts no one can tell.`;
}

function numbers(shown, tracks, data) {
  const columns = shown.flatMap((name) => [
    [name, tracks.bias[name], ["bias", name]],
    [`${name}, sd`, tracks.bias_sd[name], ["bias_sd", name]],
  ]);
  return [
    shown.length && sampled("Bias along decisions, some of them", tracks, TRACK, columns),
    table(
      "Bias by coordinate, of all units",
      ["coordinate", "bias", "sd", "sd between units", "sd of contexts"],
      wholly(data.diagnostics),
    ),
  ];
}

function wholly(found) {
  const names = ["bias", "bias_sd", "bias_units_sd", "context_sd"];
  const columns = names.map((name) => entries("diagnostics", found, name));
  return columns[0].map(({ name }, i) => [name, ...columns.map((one) => exact(one[i].value, one[i].where))]);
}
