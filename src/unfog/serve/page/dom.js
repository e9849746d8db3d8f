// Elements, and how what is shown becomes what it should be without being built anew: focus, selection and
// whatever is open stay as they are.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; what is null or false is left out. */
export function el(name, attributes = {}, ...children) {
  return dressed(document.createElement(name), attributes, children);
}

/** The same, of a drawing. */
export function svg(name, attributes = {}, ...children) {
  return dressed(document.createElementNS(SVG, name), attributes, children);
}

function dressed(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...present(children));
  return node;
}

/** Without what was left out by a condition. */
const present = (children) => children.flat(3).filter((child) => child || child === "");

/** Make the children of a node these, changing only what differs. */
export function put(node, ...children) {
  const fresh = document.createDocumentFragment();
  fresh.append(...present(children));
  morphChildren(node, [...fresh.childNodes]);
}

function morphChildren(node, wanted) {
  const there = [...node.childNodes];
  wanted.forEach((child, i) => {
    if (i >= there.length) node.append(child);
    else if (!alike(there[i], child)) node.replaceChild(child, there[i]);
    else morph(there[i], child);
  });
  there.slice(wanted.length).forEach((child) => child.remove());
}

function alike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName;
}

function morph(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  morphChildren(old, [...fresh.childNodes]);
}
