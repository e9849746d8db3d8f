// Whether the service answers: a word while it does, and how long ago it last did while it does not.

import { el, put } from "./dom.js";
import { words } from "./numbers.js";

const SILENCE = 8000; // milliseconds without an answer until that is said, even if nothing was refused

export function status(node) {
  let heard = null;
  let trouble = null;
  const show = () => {
    const silent = heard !== null && performance.now() - heard > SILENCE && !document.hidden;
    if (!trouble && !silent) say(heard === null ? "waits" : "lives", heard === null ? "Asking…" : "Live");
    else say("lost", `${trouble ?? "The service does not answer"}${ago()}`);
  };
  const ago = () =>
    heard === null ? "" : `, last answer ${words(Math.round((performance.now() - heard) / 1000))} s ago`;
  const say = (kind, said) => {
    node.className = `status ${kind}`;
    put(node, el("span", { class: "lamp", "aria-hidden": "true" }), el("span", { class: "said" }, said));
    // What counts seconds is not read aloud each second.
    const polite = kind === "lost" && node.dataset.kind === "lost" ? "off" : "polite";
    node.setAttribute("aria-live", polite);
    node.dataset.kind = kind;
  };
  setInterval(show, 1000);
  show();
  return {
    answered: () => {
      heard = performance.now();
      trouble = null;
      show();
    },
    failed: (why) => {
      trouble = why;
      show();
    },
  };
}
