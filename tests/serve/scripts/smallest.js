// The smallest type that is seen.
const written = (node) =>
  [...node.childNodes].some((one) => one.nodeType === Node.TEXT_NODE && one.data.trim());
const seen = [...document.querySelectorAll("main *")].filter(
  (node) => node.checkVisibility() && written(node),
);
return Math.min(...seen.map((node) => parseFloat(getComputedStyle(node).fontSize)));
