// The answers of a page that carries its trace: the same as a server's, from columns in memory.

import { Failure, Numbers, carried, column } from "./stored.mjs";
import { Pyramid, Spans, Steps, busySpans, partition, tilesOfRows } from "./runs.mjs";

const MOST_HITS = 2000;
const MOST_NAMES = 500;
const MOST_LINKS = 1000;
const PARTS = 1024;
const MOST_EVENTS = 10_000;
const OF_SERVER = "not in a page that was exported: rpd view has it";

export { Failure };

/** What the columns hold. @type {any} */
let store = null;

const read = async () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const events = data.subtracks.reduce((sum, subtrack) => sum + subtrack.events, 0);
  const names = ["start", "duration", "name", "id", "link", "since", "value", ...(data.arguments === null ? [] : ["arguments", "texts"])];
  const bytes = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await column(name)])));
  const of = Object.fromEntries(names.map((name) => [name, new Numbers(bytes[name])]));
  const start = new Float64Array(events);
  const end = new Float64Array(events);
  const name = new Uint32Array(events);
  const id = new BigInt64Array(events);
  let at = 0;
  for (const subtrack of data.subtracks) {
    subtrack.first = at;
    subtrack.end = at + subtrack.events;
    let before = 0;
    let idBefore = 0n;
    for (; at < subtrack.end; at += 1) {
      before += of.start.next();
      idBefore = BigInt.asIntN(64, idBefore + of.id.long());
      [start[at], end[at], name[at], id[at]] = [before, before + of.duration.next(), of.name.next(), idBefore];
    }
  }
  const [calls, ops] = [new Uint32Array(data.links), new Uint32Array(data.links)];
  let [call, op] = [0, 0];
  for (let link = 0; link < data.links; link += 1) {
    call += of.link.next();
    op += of.link.signed();
    [calls[link], ops[link]] = [call, op];
  }
  const byOp = Uint32Array.from(ops.keys()).sort((a, b) => ops[a] - ops[b] || calls[a] - calls[b]);
  const values = new DataView(bytes.value.buffer);
  let value = 0;
  const rows = data.rows.map(({ counter, ...row }) => {
    if (!counter) return row;
    const [since, number] = [new Float64Array(counter.values), new Float64Array(counter.values)];
    let before = 0;
    for (let place = 0; place < counter.values; place += 1) {
      before += of.since.next();
      [since[place], number[place]] = [before, values.getFloat64(8 * value, true)];
      value += 1;
    }
    return { steps: new Steps(since, number, counter.end, new Map(counter.digits)) };
  });
  const texts = new Map();
  if (data.arguments !== null) {
    const all = JSON.parse(new TextDecoder().decode(bytes.texts));
    let event = 0;
    for (let row = 0; row < data.arguments; row += 1) {
      event += of.arguments.next();
      texts.set(event, all[of.arguments.next()]);
    }
  }
  store = { ...data, start, end, name, id, calls, ops, byOp, rows, texts, events };
};

const subtrackOf = (event) => store.subtracks[partition(store.subtracks.length, (subtrack) => store.subtracks[subtrack].end <= event)];

const spansOf = ({ first, end }) => {
  const event = Uint32Array.from({ length: end - first }, (_, at) => first + at);
  const [from, to] = [store.start.subarray(first, end), store.end.subarray(first, end)];
  return new Spans(from, to, event, to.map((at, place) => at - from[place]));
};

/** What a row shows, made when it is first looked at. */
function shownOf(row) {
  const of = store.rows[row];
  if (!of || of.steps) return of?.steps;
  of.pyramid ??= new Pyramid(of.subtrack === undefined ? busySpans(of.busy.map((subtrack) => spansOf(store.subtracks[subtrack]))) : spansOf(store.subtracks[of.subtrack]));
  return of.pyramid;
}

/** An event as answers have it. */
const hit = (event) => ({
  event, row: subtrackOf(event).row, start_ns: store.start[event], duration_ns: store.end[event] - store.start[event], name: store.name[event],
});

const kindOf = (event) => store.kinds[store.names[store.name[event]][1]];

function linksOf(event) {
  const isOp = subtrackOf(event).is_op;
  const count = store.calls.length;
  const [of, other] = isOp ? [(at) => store.ops[store.byOp[at]], (at) => store.calls[store.byOp[at]]] : [(at) => store.calls[at], (at) => store.ops[at]];
  const first = partition(count, (at) => of(at) < event);
  const end = partition(count, (at) => of(at) <= event);
  return Array.from({ length: end - first }, (_, at) => other(first + at));
}

/** The operations of the calls of a marker's thread that it encloses, by their start. */
function opsUnder(marker) {
  const { track } = subtrackOf(marker);
  const [from, to] = [store.start[marker], store.end[marker]];
  const ops = new Set();
  for (const { first, end } of store.subtracks.filter((subtrack) => subtrack.track === track)) {
    const place = (call) => partition(store.calls.length, (at) => store.calls[at] < call);
    for (let at = place(first); at < place(end); at += 1) {
      if (store.start[store.calls[at]] >= from && store.end[store.calls[at]] <= to) ops.add(store.ops[at]);
    }
  }
  return [...ops].sort(byStart);
}

function eventOf({ event, op, call, row }) {
  if (event !== undefined) return event;
  const id = op ?? call;
  if (id !== undefined) {
    const wanted = BigInt(id);
    for (const subtrack of store.subtracks.filter((one) => one.is_op === (op !== undefined))) {
      for (let at = subtrack.first; at < subtrack.end; at += 1) if (store.id[at] === wanted) return at;
    }
    return undefined;
  }
  const subtrack = store.subtracks[store.rows[row]?.subtrack];
  return subtrack && subtrack.first;
}

const UNITS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 };

function nsOf(text) {
  const [, number, unit] = text.match(/^(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)?$/) ?? [];
  if (number === undefined) throw new Failure(`${text} is not a time such as 10s, 1.5ms, 250us, 2m or 1h`);
  return Math.floor(Number(number) * UNITS[unit ?? "ns"] + 1e-6);
}

/** Classes of characters as POSIX names them. */
const CLASSES = {
  alnum: "0-9A-Za-z", alpha: "A-Za-z", ascii: "\\x00-\\x7f", blank: "\\t ", cntrl: "\\x00-\\x1f\\x7f", digit: "0-9", graph: "!-~", lower: "a-z", print: " -~",
  punct: "!-\\x2f:-@\\x5b-\\x60\\x7b-~", space: "\\t\\n\\v\\f\\r ", upper: "A-Z", word: "0-9A-Za-z_", xdigit: "0-9A-Fa-f",
};

/** A regular expression as the server's language has it, in the browser's: what differs is written out. */
export function regexOf(text) {
  const [, flags, pattern] = text.match(/^(?:\(\?([imsu]+)\))?(.*)$/s);
  const written = pattern.replace(/\\([^0-9A-Za-z])|\\([Az])|\(\?P</gsu, (found, sign, end) =>
    sign ? (sign.codePointAt(0) < 128 ? `\\x${sign.codePointAt(0).toString(16).padStart(2, "0")}` : found) : end ? (end === "A" ? "^" : "$") : "(?<");
  return new RegExp(written.replace(/\[:(\w+):\]/g, (found, name) => CLASSES[name] ?? found), [...new Set(`${flags ?? ""}u`)].join(""));
}

/** What a search asks for: of names, of durations, of GPUs, of arguments. */
function terms(text) {
  if (!text.trim()) throw new Failure("nothing to look for");
  const asked = { isName: () => true, longer: -Infinity, shorter: Infinity, gpu: null, words: [] };
  const pattern = text.trim().match(/^re:(.*)$/s);
  if (pattern) {
    let regex;
    try {
      regex = regexOf(pattern[1]);
    } catch {
      throw new Failure("that is no regular expression");
    }
    return { ...asked, isName: (name) => regex.test(name) };
  }
  const words = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    if (word.startsWith("dur>")) asked.longer = nsOf(word.slice(4));
    else if (word.startsWith("dur<")) asked.shorter = nsOf(word.slice(4));
    else if (word.startsWith("gpu:")) asked.gpu = word.slice(4);
    else if (word.startsWith("arg:")) asked.words.push(word.slice(4).toLowerCase());
    else words.push(word.toLowerCase());
  }
  return { ...asked, isName: (name) => words.every((word) => name.toLowerCase().includes(word)) };
}

/** The events that a search finds, by their start. */
function hitsOf(q) {
  const { isName, longer, shorter, gpu, words } = terms(q);
  if (words.length && store.arguments === null) throw new Failure("this page has no arguments of calls: rpd export timeline --args writes one that has");
  const is = store.names.map(([text]) => isName(text));
  const has = (event) => {
    const text = words.length ? store.texts.get(event)?.toLowerCase() : "";
    return text !== undefined && words.every((word) => text.includes(word));
  };
  const events = [];
  for (const subtrack of store.subtracks.filter((one) => gpu === null || one.gpu === gpu)) {
    for (let at = subtrack.first; at < subtrack.end; at += 1) {
      const duration = store.end[at] - store.start[at];
      if (is[store.name[at]] && duration > longer && duration < shorter && has(at)) events.push(at);
    }
  }
  return events.sort(byStart);
}

const byStart = (a, b) => store.start[a] - store.start[b] || a - b;

/** Which of events in the order of their start comes next, or before. */
function step(events, { after, at, back }) {
  const count = events.length;
  if (!count) return null;
  const before = (isIn) => partition(count, (place) => isIn(events[place]));
  let place = back ? count - 1 : 0;
  if (back && after !== undefined) place = before((event) => byStart(event, after) < 0) - 1;
  else if (back && at !== undefined) place = before((event) => store.start[event] < at) - 1;
  else if (after !== undefined) place = before((event) => byStart(event, after) <= 0);
  else if (at !== undefined) place = before((event) => store.start[event] < at);
  place = (place + count) % count;
  return { event: events[place], place: place + 1, of: count };
}

const SORTS = {
  all: () => true,
  calls: (kind) => kind === "call" || kind === "wait",
  markers: (kind) => kind === "marker",
  operations: (kind) => !["call", "wait", "marker"].includes(kind),
};

/** The events of a selection. */
function* selected([from, to], rows, { sort = "all", q = "" } = {}) {
  const asked = rows && new Set(rows.map((row) => store.rows[row]?.subtrack));
  // Of a track whose rows are all asked for also the rest that found no row.
  const lacking = new Set(store.subtracks.filter((subtrack, number) => asked && !subtrack.is_overfull && !asked.has(number)).map(({ track }) => track));
  const subtracks = store.subtracks.filter((subtrack, number) => !asked || asked.has(number) || !lacking.has(subtrack.track));
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const isName = store.names.map(([text, kind]) => SORTS[sort](store.kinds[kind]) && words.every((word) => text.toLowerCase().includes(word)));
  for (const subtrack of subtracks) {
    for (let at = subtrack.first; at < subtrack.end && store.start[at] < to; at += 1) {
      if (isName[store.name[at]] && (store.end[at] > from || store.start[at] >= from)) yield at;
    }
  }
}

/** Where bins of durations begin, ns. */
const EDGES = [0, ...Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat()];

/** How many of durations in ascending order are how long, from the first bin that has any to the last. */
function histogram(sorted) {
  const below = (ns) => partition(sorted.length, (at) => sorted[at] < ns);
  const bins = EDGES.map((from_ns, at) => {
    const to_ns = EDGES[at + 1] ?? null;
    return { from_ns, to_ns, count: (to_ns === null ? sorted.length : below(to_ns)) - below(from_ns) };
  });
  const first = bins.findIndex((bin) => bin.count);
  return first < 0 ? [] : bins.slice(first, bins.findLastIndex((bin) => bin.count) + 1);
}

/** How many of the times, which are sorted by their begin, overlap at most. What takes no time is nowhere. */
function mostAtOnce(times) {
  const running = times.filter(([begin, end]) => end > begin);
  const ends = running.map(([, end]) => end).sort((a, b) => a - b);
  let [ended, most] = [0, 0];
  running.forEach(([begin], begun) => {
    while (ends[ended] <= begin) ended += 1;
    most = Math.max(most, begun + 1 - ended);
  });
  return most;
}

/** Of durations in ascending order. */
function durations(sorted) {
  const count = sorted.length;
  if (!count) return { count: 0, total_ns: 0, mean_ns: 0, p50_ns: 0, p99_ns: 0, max_ns: 0 };
  const total = sorted.reduce((sum, ns) => sum + ns, 0);
  const rank = (percent) => sorted[Math.max(1, Math.ceil((count * percent) / 100)) - 1];
  return { count, total_ns: total, mean_ns: total / count, p50_ns: rank(50), p99_ns: rank(99), max_ns: sorted[count - 1] };
}

const times = ([from, to]) => [Math.max(0, Math.floor(from)), Math.max(0, Math.ceil(to))];

export const server = {
  ...carried,
  async trace() {
    if (!store) await read();
    return store.trace;
  },
  async tiles(level, first, tiles, rows) {
    return tilesOfRows(shownOf, (event) => store.name[event], { level, first, tiles, rows });
  },
  names: async (from) => store.names.slice(from, from + 4096),
  async event(which) {
    let event = eventOf(which);
    if (event === undefined || !(event < store.events)) throw new Failure("the page has no such event: it may be of another part of the trace");
    const subtrack = subtrackOf(event);
    event = Math.min(Math.max(event + (which.move ?? 0), subtrack.first), subtrack.end - 1);
    const isMarker = kindOf(event) === "marker";
    const links = isMarker ? opsUnder(event) : linksOf(event);
    const under = isMarker && links.length ? {
      start_ns: links.reduce((least, op) => Math.min(least, store.start[op]), Infinity), end_ns: links.reduce((most, op) => Math.max(most, store.end[op]), 0),
      total_ns: links.reduce((sum, op) => sum + store.end[op] - store.start[op], 0),
    } : null;
    const text = store.texts.get(event) ?? "";
    const pairs = text.split("|").map((pair) => pair.split(/=(.*)/s).map((part) => part.trim())).filter(([key, value]) => key && value !== undefined);
    return {
      ...hit(event), id: String(store.id[event]), source: 0, is_op: subtrack.is_op, text: store.names[store.name[event]][0], kind: kindOf(event),
      begin_ns: String(BigInt(store.trace.facts.first_ns) + BigInt(store.start[event])), rows: [],
      arguments: pairs.map(([key, value]) => [key, value]), memory: null, touched: [], under, links: links.slice(0, MOST_LINKS).map(hit), all_links: links.length,
    };
  },
  async search(q) {
    const events = hitsOf(q);
    const parts = new Array(PARTS).fill(0);
    const span = Math.max(1, store.trace.facts.span_ns);
    const is = store.names.map(() => false);
    const bits = new Uint8Array(Math.ceil(store.events / 8));
    for (const event of events) {
      parts[Math.min(PARTS - 1, Math.floor((store.start[event] * PARTS) / span))] += 1;
      is[store.name[event]] = true;
      bits[event >> 3] |= 1 << (event & 7);
    }
    const named = store.name.reduce((sum, name) => sum + is[name], 0);
    return {
      count: events.length, names: is.flatMap((one, name) => (one ? [name] : [])),
      bits: named === events.length ? null : btoa(bits.reduce((text, byte) => text + String.fromCharCode(byte), "")), hits: events.slice(0, MOST_HITS).map(hit), parts,
    };
  },
  async hit(q, whence) {
    const found = step(hitsOf(q), whence);
    if (!found) throw new Failure("the search has no hits");
    return found;
  },
  async statistics(time, rows, more) {
    const [from, to] = times(time);
    const of = new Map();
    const all = [];
    const inside = [];
    for (const event of selected([from, to], rows, more)) {
      const duration = store.end[event] - store.start[event];
      all.push(duration);
      inside.push([Math.max(store.start[event], from), Math.min(store.end[event], to)]);
      if (of.has(store.name[event])) of.get(store.name[event]).push(duration);
      else of.set(store.name[event], [duration]);
    }
    inside.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let [busy, until, spent] = [0, 0, 0];
    for (const [begin, end] of inside) {
      spent += Math.max(0, end - begin);
      busy += Math.max(0, end - Math.max(begin, until));
      until = Math.max(until, end);
    }
    const ascending = (a, b) => a - b;
    const names = [...of].map(([name, list]) => ({ name, ...durations(list.sort(ascending)) }));
    const text = (one) => store.names[one.name][0];
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    const by = { count: "count", total: "total_ns", mean: "mean_ns", p50: "p50_ns", p99: "p99_ns", max: "max_ns" }[more.by ?? "total"];
    const order = (a, b) => (by ? a[by] - b[by] : compare(text(a), text(b)));
    names.sort((a, b) => (more.ascending ? order(a, b) : -order(a, b)) || a.name - b.name);
    const sorted = all.sort(ascending);
    const together = { concurrency: busy ? spent / busy : 0, most_at_once: mostAtOnce(inside), histogram: histogram(sorted) };
    return { ...durations(sorted), busy_ns: busy, ...together, names: more.all ? names : names.slice(0, MOST_NAMES), all_names: names.length };
  },
  async events(time, rows, { order = "start", ascending, ...more }) {
    const found = [...selected(times(time), rows, more)];
    const length = (event) => store.end[event] - store.start[event];
    const all = found.length;
    const key = {
      start: (event) => store.start[event], duration: length, name: (event) => store.names[store.name[event]][0], kind: kindOf,
      row: (event) => subtrackOf(event).row ?? Infinity, id: (event) => store.id[event],
    }[order];
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (ascending ? 1 : -1);
    found.sort((a, b) => compare(key(a), key(b)) || byStart(a, b));
    const event = found.slice(0, MOST_EVENTS);
    return {
      all, event, start_ns: event.map((one) => store.start[one]), duration_ns: event.map(length), name: event.map((one) => store.name[one]),
      row: event.map((one) => subtrackOf(one).row), id: event.map((one) => String(store.id[one])),
    };
  },
  async next(time, rows, { name, after, at, back, ...more }) {
    const events = [...selected(times(time), rows, more)].filter((event) => store.name[event] === name);
    const found = step(events.sort(byStart), { after, at, back });
    if (!found) throw new Failure("no event of the selection has that name");
    return found;
  },
  async value(row, at, time) {
    const { steps } = store.rows[row];
    const place = steps.at(Math.max(0, Math.floor(at)));
    const [from, to] = times(time);
    const [first, end] = steps.within(from, Math.max(from, to));
    let [least, greatest] = [first, first];
    for (let one = first; one < end; one += 1) {
      if (steps.number[one] < steps.number[least]) least = one;
      if (steps.number[one] > steps.number[greatest]) greatest = one;
    }
    const held = place < 0 ? null : { value: steps.text(place), since_ns: steps.times(place)[0], until_ns: steps.times(place)[1] };
    return { held, values: end - first, least: end > first ? steps.text(least) : null, greatest: end > first ? steps.text(greatest) : null };
  },
};

/** What only a server answers fails with words that say so. */
for (const name of ["grown", "align", "deltas", "query", "queries", "report", "tree", "code", "derive", "span", "waits"]) server[name] = async () => { throw new Failure(OF_SERVER); };
