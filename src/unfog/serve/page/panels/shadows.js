// Agents that decide beside the one that is obeyed: how often they agree, and what they would have earned.

import { rows, whisker } from "../bars.js";
import { el, put } from "../dom.js";
import { BLUE, ORANGE } from "../look.js";
import { exact, from, number, percent, table } from "../numbers.js";
import { panel } from "../panel.js";

const FIELDS = ["agreement", "mean", "low", "high", "count", "effective"];

export function make() {
  const frame = panel("shadows", "Shadows beside the agent that is obeyed");
  const update = ({ problem, history }) => {
    const found = ["", ...history.shadows].filter((name) => history.estimates[name]);
    if (!history.shadows.length)
      put(
        frame.holder,
        el(
          "p",
          { class: "nothing" },
          "No shadow decides beside it. One can be added at any time; it learns from then on.",
        ),
      );
    else put(frame.holder, compared(found, history.estimates, problem.agent));
    frame.lead(
      history.shadows.length &&
        el(
          "p",
          {},
          "What a decision is worth by inverse propensities of the log, with its 95 % interval.",
        ),
    );
    frame.look(
      "A shadow whose interval lies to the right of the other would have earned more. Intervals that overlap decide nothing yet; a small effective number of decisions says the same.",
    );
    const cells = (name) =>
      FIELDS.map((field) => exact(history.estimates[name][field], from("history", "estimates", name, field)));
    frame.numbers(
      table(
        "Agents on the same decisions",
        ["agent", "agreement", "value", "low", "high", "decisions", "effective"],
        found.map((name) => [titled(name, problem.agent), ...cells(name)]),
      ),
    );
  };
  return { ...frame, update };
}

const titled = (name, agent) => (name === "" ? `${agent}, obeyed` : name);

function compared(names, values, agent) {
  const ends = names
    .flatMap((name) => [values[name].low, values[name].high, values[name].mean])
    .filter((value) => value !== null && value !== undefined);
  const [first, last] = ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
  const axis = first === last ? [first - 1, last + 1] : [first, last];
  return rows(
    names.map((name) => {
      const where = (field) => from("history", "estimates", name, field);
      const said = [
        number(values[name].mean, where("mean")),
        name === "" ? null : [" · agrees in ", percent(values[name].agreement, where("agreement"))],
      ];
      return [titled(name, agent), whisker(values[name], axis, name === "" ? BLUE : ORANGE), said.flat()];
    }),
  );
}
