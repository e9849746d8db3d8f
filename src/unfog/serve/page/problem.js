// One problem: its numbers, and a panel for each question one may have of it.

import * as api from "./api.js";
import { controls, TOGETHER } from "./controls.js";
import { el, put } from "./dom.js";
import { from, number, percent } from "./numbers.js";
import * as arms from "./panels/arms.js";
import * as bank from "./panels/bank.js";
import * as bias from "./panels/bias.js";
import * as calibration from "./panels/calibration.js";
import * as denoising from "./panels/denoising.js";
import * as innovations from "./panels/innovations.js";
import * as rewards from "./panels/rewards.js";
import * as shadows from "./panels/shadows.js";
import * as waiting from "./panels/waiting.js";

const SOME = 2000; // points, unless all are asked for
const ALL = 200_000;
const SHORTLY = 800; // milliseconds in which the past should come; else the rest is shown without it
const REST = 5; // times as long as an answer with many points took, until the next is asked for
const COLUMNS = [
  [bias, innovations, bank, waiting],
  [rewards, shadows, arms, calibration],
]; // the sensor; decisions

export function make(name, chosen, navigate) {
  const view = shell(name, navigate);
  const past = {};
  let wanted = chosen;

  const refresh = async () => {
    const asked = wanted;
    const [problem, diagnostics, belief] = await Promise.all([
      api.describe(name),
      api.diagnostics(name),
      api.belief(name, asked.unit),
    ]);
    const history = await happened(name, asked, mark(asked, problem, diagnostics), past);
    if (asked === wanted) view.show(together(asked, { problem, diagnostics, belief, history }));
  };
  const choose = (fresh) => {
    wanted = fresh;
  };
  return { ...view, title: name, refresh, choose };
}

/** What would be another answer: the choice, and how far things have come. */
function mark({ unit, all }, problem, found) {
  return JSON.stringify([
    unit,
    all,
    problem.decisions,
    found.rewards,
    found.revealed,
    found.late_contexts,
    found.cancelled,
    found.expired,
    problem.shadows,
    problem.arms,
  ]);
}

/** What happened, or null as long as it is not there: a long log takes a while to be read for the first time. */
async function happened(name, chosen, fresh, past) {
  const wanted = `${chosen.unit} ${chosen.all}`;
  if (past.chosen !== wanted)
    Object.assign(past, { chosen: wanted, mark: null, found: null, coming: null, trouble: null, rest: 0 });
  // Asked for again only where it changed, and seldom where the answer is long.
  if (!past.coming && past.mark !== fresh && performance.now() >= past.rest) ask(name, chosen, fresh, past);
  await Promise.race([past.coming, new Promise((done) => setTimeout(done, SHORTLY))]);
  const { trouble } = past;
  past.trouble = null;
  if (trouble) throw trouble;
  return past.chosen === wanted ? past.found : null;
}

function ask(name, { unit, all }, fresh, past) {
  const started = performance.now();
  const kept = (found) => {
    const now = performance.now();
    return { found, mark: fresh, rest: all ? now + REST * (now - started) : 0 };
  };
  const mine = api
    .history(name, unit, all ? ALL : SOME)
    .then(kept, (trouble) => ({ trouble }))
    .then((news) => {
      if (past.coming === mine) Object.assign(past, news, { coming: null });
    });
  past.coming = mine;
}

/** All that a panel may want to know. */
function together(chosen, answers) {
  const names = answers.problem.columns;
  const shown = names.slice(TOGETHER * chosen.group, TOGETHER * (chosen.group + 1));
  return {
    ...answers,
    chosen,
    shown,
    unit: chosen.unit,
    time: chosen.along === "time",
    place: (name) => names.indexOf(name) % TOGETHER,
  };
}

function shell(name, navigate) {
  const heading = el("h1", { tabindex: "-1" }, name);
  const about = el("p", { class: "about" });
  const notes = el("div", { class: "notes" });
  const tiles = el("dl", { class: "tiles" });
  const bar = controls(navigate);
  const broad = denoising.make();
  const columns = COLUMNS.map((column) => column.map((one) => one.make()));
  const panels = [broad, ...columns.flat()];
  const stack = (column) =>
    el(
      "div",
      { class: "column" },
      column.map((one) => one.element),
    );
  const grid = el("div", { class: "grid" }, broad.element, columns.map(stack));
  const crumb = el("p", { class: "crumb" }, el("a", { href: "#/" }, "All problems"));
  const reading = el("p", { class: "banner", role: "status" });
  const body = el("div", { hidden: true }, bar.element, grid);
  const element = el("div", { class: "view" }, crumb, heading, about, notes, tiles, reading, body);
  const show = (data) => {
    put(about, described(data.problem));
    put(notes, told(data));
    put(tiles, figures(data));
    put(reading, data.history ? "" : "Reading the past…");
    reading.hidden = Boolean(data.history);
    if (!data.history) return;
    body.hidden = false;
    bar.update(data);
    panels.forEach((one) => one.update(data));
  };
  return { element, heading, show, destroy: () => panels.forEach((one) => one.destroy()) };
}

function described(problem) {
  const units =
    problem.units_total > 1 ? [" · ", number(problem.units_total, "problem/units_total"), " units"] : [];
  return [`agent ${problem.agent} · contexts of ${problem.context.join(", ")}`, units];
}

/** What a person should know before looking at plots. */
function told({ problem, diagnostics }) {
  const found = diagnostics.alarm.length
    ? [
        el(
          "ul",
          { class: "alarm banner" },
          diagnostics.alarm.map((said) => el("li", {}, said)),
        ),
      ]
    : [];
  if (problem.pinned)
    found.push(el("p", { class: "banner" }, `Pinned: every decision takes “${problem.pinned}”.`));
  const notes = new Set([problem.note, ...(diagnostics.notes ?? [])].filter(Boolean));
  return [...found, ...[...notes].map((note) => el("p", { class: "banner" }, note))];
}

function figures({ problem, diagnostics }) {
  const tile = (said, value, where, write = number) =>
    el("div", {}, el("dt", {}, said), el("dd", {}, write(value, where)));
  return [
    tile("decisions", problem.decisions, "problem/decisions"),
    tile("pending", problem.pending, "problem/pending"),
    tile("rewards learnt", diagnostics.rewards, from("diagnostics", "rewards")),
    tile("rewards in time", diagnostics.join_rate, from("diagnostics", "join_rate"), percent),
    tile("true contexts", diagnostics.revealed, from("diagnostics", "revealed")),
  ];
}
