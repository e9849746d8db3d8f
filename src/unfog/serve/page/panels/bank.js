// What an agent that weighs several models holds for wrong with the channel; others have no such panel.

import { bar, rows } from "../bars.js";
import { el, put } from "../dom.js";
import { ORANGE } from "../look.js";
import { entries, exact, number, table } from "../numbers.js";
import { panel } from "../panel.js";

const MOST = 8; // hypotheses that are drawn

export function make() {
  const frame = panel("bank", "What may be wrong with the channel");
  const update = ({ belief }) => {
    const found = entries("belief", belief, "weight").sort((a, b) => b.value - a.value);
    frame.element.hidden = !found.length;
    put(frame.holder, rows(found.slice(0, MOST).map(({ name, value, where }) => [name, bar(value, ORANGE), number(value, where)])));
    frame.lead(el("p", {}, `How probable the agent holds each way in which the channel may be off, ${belief.bias_of ? `for ${belief.bias_of}` : "by now"}.`));
    frame.look("Weight on one row that says something other than one times as told is what to check first. Weight on many rows means that the readings do not say yet.");
    frame.numbers(table("All of them", ["hypothesis", "weight"], found.map(({ name, value, where }) => [name, exact(value, where)])));
  };
  return { ...frame, update };
}
