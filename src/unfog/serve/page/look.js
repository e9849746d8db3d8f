// Colours and dashes. The colours stand in page.css, once for a light ground and once for a dark one; plots ask
// for them here each time they are drawn. Dashes differ too, so that curves stay apart in grey.

const DASHES = [[], [8, 3], [2, 2], [8, 3, 2, 3], [4, 2, 2, 2, 2, 2], [14, 3], [3, 3], [10, 2, 3, 2]];
const scheme = matchMedia("(prefers-color-scheme: dark)");
const known = new Map();

export const BLUE = 0;
export const ORANGE = 1;
export const RED = 6;
export const GREY = 7;

/** A colour of page.css by its name. */
export function named(name) {
  if (!known.has(name)) {
    known.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return known.get(name);
}

export const colour = (i) => named(`c${i % DASHES.length}`);
export const faint = (i) => `${colour(i)}2b`;
export const dash = (i) => DASHES[i % DASHES.length];

/** Call this whenever the colours have changed. */
export function whenChanged(call) {
  scheme.addEventListener("change", () => {
    known.clear();
    call();
  });
}
