// What an agent that weighs several models holds for wrong with the channel; others have no such panel.

import { bar, rows } from "../bars.js";
import { el, put } from "../dom.js";
import { ORANGE } from "../look.js";
import { entries, exact, percent, table } from "../numbers.js";
import { panel } from "../panel.js";

const MOST = 6; // hypotheses that are drawn
const SAID = {
  size: (value) => (value === "1" ? "noise as told" : `noise variance ${value} times as told`),
  step: (value) =>
    value === "0" ? "bias stands still" : `bias walks, ${value} of its prior variance a reading`,
  speed: (value) => (value === "1" ? "bias moves as told" : `bias moves ${value} times as fast as told`),
  tails: (value) => (value === "inf" ? null : "heavy tails"),
  sample: (value) => (value === "0" ? null : "contexts as in the sample"),
};

export function make() {
  const frame = panel("bank", "What may be wrong with the channel");
  const update = ({ belief }) => {
    const found = entries("belief", belief, "weight").sort((a, b) => b.value - a.value);
    frame.element.hidden = !found.length;
    const drawn = rows(
      found
        .slice(0, MOST)
        .map(({ name, value, where }) => [spoken(name), bar(value, ORANGE), percent(value, where)]),
    );
    drawn.classList.add("stacked");
    put(frame.holder, drawn);
    frame.lead(el("p", {}, lead(belief.bias_label)));
    frame.look(
      "If most of the weight is on one row that is not as told, check that first: the noise that was told, or a sensor that drifts. Weight on many rows means that readings do not say yet.",
    );
    frame.numbers(
      table(
        "All of them",
        ["hypothesis", "weight"],
        found.map(({ name, value, where }) => [name, exact(value, where)]),
      ),
    );
  };
  return { ...frame, update };
}

function lead(whose) {
  if (whose === "a new unit")
    return "How probable each of several models is, before anything was read of a unit. Choose a unit to see what its readings say.";
  return `How probable each of several models is, by the readings of ${whose || "the sensor"}.`;
}

/** A hypothesis, such as "size 1, step 0", in words. */
function spoken(name) {
  const parts = name.split(", ").map((part) => {
    const [what, value] = part.split(" ");
    return what in SAID ? SAID[what](value) : part;
  });
  return parts.filter(Boolean).join(", ");
}
