// What a problem is looked at by: all units or one, along decisions or time, which coordinates, how many points.

import { el, put } from "./dom.js";
import { number } from "./numbers.js";

export const TOGETHER = 6; // coordinates that are drawn at a time

/** The controls; `changed` is called with what was chosen. */
export function controls(changed) {
  const unit = el("select", { id: "unit" });
  const typed = el("input", { id: "typed", type: "text", autocomplete: "off", spellcheck: "false" });
  const form = el(
    "form",
    { class: "control", hidden: true },
    el("label", { for: "typed" }, "or a unit by name"),
    typed,
  );
  const axis = el(
    "select",
    { id: "along" },
    el("option", { value: "number" }, "decisions"),
    el("option", { value: "time" }, "time"),
  );
  const group = el("select", { id: "group" });
  const groups = labelled("Coordinates", group);
  const all = el("input", { id: "all", type: "checkbox" });
  const kept = el("span", { class: "kept" });
  unit.addEventListener("change", () => changed({ unit: unit.value === "" ? null : unit.value.slice(1) }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    changed({ unit: typed.value === "" ? null : typed.value });
  });
  axis.addEventListener("change", () => changed({ along: axis.value }));
  group.addEventListener("change", () => changed({ group: Number(group.value) }));
  all.addEventListener("change", () => changed({ all: all.checked }));
  const points = el(
    "div",
    { class: "control points" },
    el("span", { class: "tick" }, all, el("label", { for: "all" }, "all points")),
    kept,
  );
  const element = el(
    "div",
    { class: "controls", role: "group", "aria-label": "What is shown" },
    labelled("Units", unit),
    form,
    labelled("Along", axis),
    groups,
    points,
  );
  const update = ({ problem, history, chosen }) => {
    fillUnits(unit, problem, chosen.unit);
    form.hidden = problem.units_total <= problem.units.length;
    axis.value = chosen.along;
    all.checked = chosen.all;
    groups.hidden = problem.columns.length <= TOGETHER;
    if (!groups.hidden) fillGroups(group, problem.columns, chosen.group);
    put(kept, shown(history));
  };
  return { element, update };
}

const labelled = (said, input) =>
  el("div", { class: "control" }, el("label", { for: input.id }, said), input);

/** All units, and each; the one that is looked at is there even where there are too many to list. */
function fillUnits(select, problem, unit) {
  const names = problem.units.filter((name) => name !== "" && name !== null);
  if (unit !== null && !names.includes(unit)) names.push(unit);
  put(
    select,
    el("option", { value: "" }, "all units"),
    names.map((name) => el("option", { value: `=${name}` }, name)),
  );
  select.value = unit === null ? "" : `=${unit}`;
}

function fillGroups(select, names, group) {
  const starts = names.map((_, i) => i).filter((i) => i % TOGETHER === 0);
  put(
    select,
    starts.map((i) => el("option", { value: String(i / TOGETHER) }, names.slice(i, i + TOGETHER).join(", "))),
  );
  select.value = String(group);
}

/** How many decisions there are, and how many are drawn. */
function shown(history) {
  const drawn = history.points.number.length;
  const kept = number(history.kept, "history/kept");
  const count = el(
    "span",
    { "data-value": String(drawn), "data-from": "count/history/points/number" },
    drawn.toLocaleString("en-GB"),
  );
  if (history.kept === history.decisions) return [count, " of ", kept, " drawn"];
  return [count, " of the newest ", kept, " drawn"];
}
