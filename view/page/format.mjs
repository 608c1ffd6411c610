// Numbers and texts as people read them.

const UNITS = [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]];

/** A duration in ns, with three or four digits. */
export function duration(ns) {
  if (ns === 0) return "0";
  const [unit, size] = UNITS.findLast(([, size]) => Math.abs(ns) >= size) ?? UNITS[0];
  const value = ns / size;
  const digits = unit === "ns" ? (Number.isInteger(value) ? 0 : 1) : Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3;
  return `${value.toFixed(digits)} ${unit}`;
}

/** When something is, in ns: exact, with as many digits as that takes. */
export function exact(ns) {
  const [unit, size] = UNITS.findLast(([, size]) => ns >= size) ?? UNITS[0];
  const part = String(size + (ns % size)).slice(1).replace(/0+$/, "");
  return ns ? `${Math.floor(ns / size)}${part && `.${part}`} ${unit}` : "0";
}

/** A time in ns, exact to the step that is seen. */
export function time(ns, step) {
  const [unit, size] = UNITS.findLast(([, size]) => step >= size || Math.abs(ns) >= size * 1000) ?? UNITS[0];
  const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  return `${(ns / size).toFixed(digits)} ${unit}`;
}

/** A number with its thousands apart. */
export function count(number) {
  const [whole, part] = String(number).split(".");
  const apart = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return part ? `${apart}.${part}` : apart;
}

/** How many there are of what has a word for one and one for several. */
export const plural = (number, one, several) => `${count(number)} ${number === 1 ? one : several}`;

/** A value of a counter, with at most seven digits. */
export function number(value) {
  const rounded = Number(value.toPrecision(7));
  return Math.abs(rounded) >= 1e15 ? String(rounded) : count(rounded);
}

/** A size. */
export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(number, 1)) / 10));
  return `${(number / 2 ** (10 * unit)).toFixed(unit ? 1 : 0)} ${units[unit]}`;
}

/** A value of a counter as people read it: memory is counted in bytes, bandwidth in bytes a second. */
export function valueOf({ key }, value) {
  if (/\.c-(memory|pinned)$/.test(key)) return bytes(value);
  return key.endsWith(".c-bandwidth") ? `${bytes(value)}/s` : number(value);
}

/** A share of 1. */
export function percent(share) {
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

// Control characters, separators, and what reverses, joins or hides text.
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** A text of the trace with every character that is not seen written out. */
export function shown(text) {
  return text.replace(UNSAFE, (char) => {
    const code = char.codePointAt(0);
    if (char === "\n") return "\\n";
    if (char === "\t") return "\\t";
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}
