// Every number on the page: its exact value, where it says it is from, and how it is written.
return [...document.querySelectorAll("[data-value]")].map((node) => ({
  value: node.dataset.value,
  from: node.dataset.from,
  text: node.textContent,
  scale: Number(node.dataset.scale ?? 1),
  table: node.closest(".sheet") !== null,
  time: node.localName === "time",
}));
