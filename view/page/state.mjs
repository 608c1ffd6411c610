// What is looked at, as the fragment of the page's address: times, the selected event, the search, closed groups, marks,
// cursors, how rows are arranged.

/**
 * @typedef {[string, number, number] | [string]} Part key of a track, and the first and the last of its rows, if they are not all
 * @typedef {object} State
 * @property {[number, number] | null} t times that are looked at, ns; null: all
 * @property {boolean} isAll whether it is said that all is looked at: otherwise an address with an event leads to that
 * @property {string | null} sel selected event: `op:ID` or `call:ID`, of a second trace with `b.` in front
 * @property {[number, number] | null} range selected times
 * @property {Part[] | null} parts rows of the selected times; null: all
 * @property {string} q search
 * @property {string[] | null} closed keys of closed groups and tracks; null: as they are at first
 * @property {[number, string][]} marks times with their names
 * @property {number | null} shift from the begin of the first of two traces to that of the second, ns; null: as it is at first
 * @property {(number | null)[]} cursors times of the two cursors
 * @property {string[] | null} pins keys of rows that stay at the top
 * @property {string[] | null} hidden keys of rows that are hidden
 * @property {string[] | null} order keys of rows in the order that people gave
 * @property {string} rows words that labels of rows have which are shown
 * @property {string[]} derived what is worked out and shown as rows of its own
 * @property {string} ask question in SQL
 * @property {number} askOf number of the trace that it is about
 * @property {string} tab pane
 */

export const START = Object.freeze({ t: null, isAll: false, sel: null, range: null, parts: null, q: "", closed: null, marks: Object.freeze([]), shift: null, cursors: Object.freeze([null, null]), pins: null, hidden: null, order: null, rows: "", derived: Object.freeze([]), ask: "", askOf: 0, tab: "details" });

const TABS = ["details", "selection", "compare", "flame", "reports", "sql", "code", "search", "marks", "trace"];
const DERIVED = ["streams", "markers", "graphs", "memory", "bandwidth"];
const LISTS = { pin: "pins", hide: "hidden", order: "order" };
const MOST_MARKS = 500;
const MOST_ASKED = 4000;

/** @param {State} state */
export function toFragment(state) {
  const parts = [];
  const times = ([from, to]) => `${Math.round(from)},${Math.round(to)}`;
  if (state.t) parts.push(`t=${times(state.t)}`);
  else if (state.isAll) parts.push("t=all");
  if (state.sel) parts.push(`sel=${state.sel}`);
  if (state.range) parts.push(`range=${times(state.range)}`);
  if (state.range && state.parts) parts.push(`in=${state.parts.map(([key, ...rows]) => [encodeURIComponent(key), ...rows].join(":")).join(",")}`);
  if (state.q) parts.push(`q=${encodeURIComponent(state.q)}`);
  if (state.closed) parts.push(`closed=${state.closed.map(encodeURIComponent).join(",")}`);
  if (state.marks.length) {
    const marks = state.marks.slice(0, MOST_MARKS).map(([at, name]) => `${Math.round(at)}:${encodeURIComponent(name.toWellFormed?.() ?? name)}`);
    parts.push(`m=${marks.join(",")}`);
  }
  if (state.shift !== null) parts.push(`shift=${Math.round(state.shift)}`);
  for (const [key, name] of Object.entries(LISTS)) if (state[name]) parts.push(`${key}=${state[name].map(encodeURIComponent).join(",")}`);
  if (state.rows) parts.push(`rows=${encodeURIComponent(state.rows)}`);
  if (state.derived.length) parts.push(`lanes=${state.derived.join(",")}`);
  if (state.cursors.some((at) => at !== null)) parts.push(`c=${state.cursors.map((at) => (at === null ? "" : Math.round(at))).join(",")}`);
  if (state.ask) parts.push(`ask=${encodeURIComponent(state.ask.slice(0, MOST_ASKED))}${state.askOf ? "&of=b" : ""}`);
  if (state.tab !== START.tab) parts.push(`tab=${state.tab}`);
  return parts.length ? `#${parts.join("&")}` : "";
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function marksOf(text) {
  const marks = text.split(",").slice(0, MOST_MARKS).map((mark) => mark.match(/^(-?\d{1,16}):(.*)$/s)).filter(Boolean);
  const found = marks.map(([, at, name]) => [Number(at), decoded(name).slice(0, 200)]);
  return found.filter(([at]) => Number.isSafeInteger(at)).sort(([one], [other]) => one - other);
}

function partsOf(text) {
  const parts = text.split(",").map((part) => part.match(/^([^:]+)(?::(\d{1,5}):(\d{1,5}))?$/)).filter(Boolean);
  return parts.map(([, key, first, last]) => (first === undefined ? [decoded(key)] : [decoded(key), Number(first), Number(last)]));
}

/** The state of a fragment; what is wrong in it is left out. @returns {State} */
export function fromFragment(fragment) {
  const state = { ...START };
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const [key, value = ""] = part.split(/=(.*)/s);
    const numbers = value.split(",").map(Number);
    const isTimes = numbers.length === 2 && numbers.every(Number.isSafeInteger) && numbers[0] < numbers[1];
    if (key === "t" && isTimes) state.t = numbers;
    if (key === "t" && value === "all") state.isAll = true;
    if (key === "range" && isTimes) state.range = numbers;
    if (key === "in") state.parts = partsOf(value);
    if (key === "sel" && /^(b\.)?(op|call):-?\d{1,19}$/.test(value)) state.sel = value;
    if (key === "q") state.q = decoded(value);
    if (key === "closed") state.closed = value.split(",").filter(Boolean).map(decoded);
    if (key in LISTS) state[LISTS[key]] = value.split(",").filter(Boolean).map(decoded);
    if (key === "ask") state.ask = decoded(value);
    if (key === "of" && value === "b") state.askOf = 1;
    if (key === "rows") state.rows = decoded(value);
    if (key === "lanes") state.derived = DERIVED.filter((what) => value.split(",").includes(what));
    if (key === "c" && /^\d*,\d*$/.test(value)) state.cursors = value.split(",").map((at) => (at === "" || !Number.isSafeInteger(Number(at)) ? null : Number(at)));
    if (key === "m") state.marks = marksOf(value);
    if (key === "shift" && /^-?\d{1,16}$/.test(value)) state.shift = Number(value);
    if (key === "tab" && TABS.includes(value)) state.tab = value;
  }
  return state;
}
