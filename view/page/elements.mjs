// Making elements. Texts become text only, never markup.

/**
 * An element with attributes and what is in it: texts, elements, null.
 * @param {string} tag
 */
export function make(tag, attributes = {}, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...content.flat().filter((one) => one !== null && one !== undefined));
  return made;
}

/** Characters of a text that are shown at first. */
const FOLDED_FROM = 600;

/** A text; a long one has its begin, which opens to all of it. @param {string} text */
export function folded(text) {
  if (text.length <= FOLDED_FROM) return text;
  return make("details", { class: "folded", title: text }, make("summary", {}, make("span", {}, `${text.slice(0, FOLDED_FROM)}…`)), text);
}

/** Names with a value each. */
export const figures = (pairs) =>
  make("dl", { class: "figures" }, pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));

/** A part of a drawing. @param {string} tag */
export function svg(tag, attributes, ...content) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...content);
  return made;
}
