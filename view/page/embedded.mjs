// The answers of a page that carries its trace: the same as a server's, from columns in memory.

import { Numbers, column } from "./stored.mjs";
import { Pyramid, Spans, Steps, TOP_LEVEL, busySpans, partition } from "./runs.mjs";

const BUCKETS = 512;
const MAGIC = 0x74647072;
const MOST_HITS = 2000;
const MOST_NAMES = 500;
const MOST_LINKS = 1000;
const PARTS = 1024;
const MOST_EVENTS = 10_000;
const OF_SERVER = "not in a page that was exported: rpd view has it";

/** What went wrong, in words for people. */
export class Failure extends Error {}

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
function pyramidOf(row) {
  const of = store.rows[row];
  if (!of || of.steps) return null;
  of.pyramid ??= new Pyramid(of.subtrack === undefined ? busySpans(of.busy.map((subtrack) => spansOf(store.subtracks[subtrack]))) : spansOf(store.subtracks[of.subtrack]));
  return of.pyramid;
}

/** The busy share of a run in 255ths; never none where there is something. */
function share(run, level) {
  const whole = run.length * 2 ** level;
  const rounded = whole > 2 ** 44
    ? Number((BigInt(run.busy) * 255n + BigInt(whole) / 2n) / BigInt(whole))
    : Math.floor((run.busy * 255 + Math.floor(whole / 2)) / whole);
  return Math.min(255, Math.max(1, rounded));
}

const bits = new DataView(new ArrayBuffer(4));
const floatBits = (number) => {
  bits.setFloat32(0, number, true);
  return bits.getUint32(0, true);
};

/** Runs of one tile as they are sent. */
function sent(row, level, tile) {
  const [from, to] = [tile * BUCKETS, (tile + 1) * BUCKETS];
  const { steps } = store.rows[row] ?? {};
  if (!steps) {
    const runs = pyramidOf(row)?.runs(level, from, to) ?? [];
    return runs.map((run) => [run.event, store.name[run.event], Math.min(run.count, 2 ** 32 - 1), run.first - from, run.length, share(run, level)]);
  }
  const found = [];
  let end = 0;
  for (const band of steps.bands(level, from, to)) {
    const [one, two] = [floatBits(band.least), floatBits(band.greatest)];
    const last = found.at(-1);
    if (last && last[0] === one && last[1] === two && end === band.first) {
      last[4] += band.length;
      last[2] += band.count;
    } else found.push([one, two, band.count, band.first - from, band.length, 255]);
    end = band.first + band.length;
  }
  return found;
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
  return [Array.from({ length: Math.min(end - first, MOST_LINKS) }, (_, at) => other(first + at)), end - first];
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

const UNITS = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

function nsOf(text) {
  const [, number, unit] = text.match(/^(\d+(?:\.\d+)?)(ns|us|ms|s)?$/) ?? [];
  if (number === undefined) throw new Failure(`${text} is no time, such as 10us or 1.5ms`);
  return Number(number) * UNITS[unit ?? "ns"];
}

/** What a search asks for: of names, of durations, of GPUs. */
function terms(text) {
  const asked = { isName: () => true, longer: -Infinity, shorter: Infinity, gpu: null };
  const pattern = text.trim().match(/^re:(.*)$/s);
  if (pattern) {
    let regex;
    try {
      regex = new RegExp(pattern[1], "u");
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
    else words.push(word.toLowerCase());
  }
  return { ...asked, isName: (name) => words.every((word) => name.toLowerCase().includes(word)) };
}

const SORTS = {
  all: () => true,
  calls: (kind) => kind === "call" || kind === "wait",
  markers: (kind) => kind === "marker",
  operations: (kind) => !["call", "wait", "marker"].includes(kind),
};

/** The events of a selection. */
function* selected([from, to], rows, { sort = "all", q = "" } = {}) {
  const subtracks = rows ? [...new Set(rows.map((row) => store.rows[row]?.subtrack).filter((subtrack) => subtrack !== undefined))].sort((a, b) => a - b) : store.subtracks.keys();
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const isName = store.names.map(([text, kind]) => SORTS[sort](store.kinds[kind]) && words.every((word) => text.toLowerCase().includes(word)));
  for (const number of subtracks) {
    const subtrack = store.subtracks[number];
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
  requests: 0,
  /** Whether it answers what the file has to be read for. */
  readsFile: false,
  bytes: 0,
  /** Number of what the page shows. @type {number | null} */
  version: null,
  stale() {},
  async trace() {
    if (!store) await read();
    return store.trace;
  },
  async tiles(level, first, tiles, rows) {
    if (level % 2 || level > TOP_LEVEL) throw new Failure("no such level");
    const found = [];
    const counts = [];
    for (const row of rows) {
      for (let tile = first; tile < first + tiles; tile += 1) {
        const runs = sent(row, level, tile);
        counts.push(runs.length);
        for (const run of runs) found.push(run);
      }
    }
    const head = [MAGIC, 1, level, rows.length, tiles, found.length, first % 2 ** 32, Math.floor(first / 2 ** 32), ...rows];
    const words = Uint32Array.from([...head, ...counts].map((word) => word >>> 0));
    const buffer = new ArrayBuffer(4 * words.length + 17 * found.length);
    new Uint32Array(buffer, 0, words.length).set(words);
    let at = 4 * words.length;
    [Uint32Array, Uint32Array, Uint32Array, Uint16Array, Uint16Array, Uint8Array].forEach((Kind, column) => {
      const part = new Kind(buffer, at, found.length);
      for (let run = 0; run < found.length; run += 1) part[run] = found[run][column];
      at += part.byteLength;
    });
    return buffer;
  },
  names: async (from) => store.names.slice(from, from + 4096),
  async event(which) {
    let event = eventOf(which);
    if (event === undefined || !(event < store.events)) throw new Failure("the page has no such event: it may be of another part of the trace");
    const subtrack = subtrackOf(event);
    event = Math.min(Math.max(event + (which.move ?? 0), subtrack.first), subtrack.end - 1);
    const [links, all] = linksOf(event);
    const text = store.texts.get(event) ?? "";
    const pairs = text.split("|").map((pair) => pair.split(/=(.*)/s).map((part) => part.trim())).filter(([key, value]) => key && value !== undefined);
    return {
      ...hit(event), id: String(store.id[event]), source: 0, is_op: subtrack.is_op, text: store.names[store.name[event]][0], kind: kindOf(event),
      begin_ns: String(BigInt(store.trace.facts.first_ns) + BigInt(store.start[event])), rows: [],
      arguments: pairs.map(([key, value]) => [key, value]), memory: null, touched: [], links: links.map(hit), all_links: all,
    };
  },
  async search(q) {
    if (!q.trim()) throw new Failure("nothing to look for");
    const { isName, longer, shorter, gpu } = terms(q);
    const is = store.names.map(([text]) => isName(text));
    const parts = new Array(PARTS).fill(0);
    const span = Math.max(1, store.trace.facts.span_ns);
    const events = [];
    for (const subtrack of store.subtracks.filter((one) => gpu === null || one.gpu === gpu)) {
      for (let at = subtrack.first; at < subtrack.end; at += 1) {
        const duration = store.end[at] - store.start[at];
        if (!is[store.name[at]] || !(duration > longer && duration < shorter)) continue;
        events.push(at);
        parts[Math.min(PARTS - 1, Math.floor((store.start[at] * PARTS) / span))] += 1;
      }
    }
    const count = events.length;
    events.sort((a, b) => store.start[a] - store.start[b] || a - b);
    return { count, names: is.flatMap((one, name) => (one ? [name] : [])), hits: events.slice(0, MOST_HITS).map(hit), parts };
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
    return { ...durations(sorted), busy_ns: busy, ...together, names: names.slice(0, MOST_NAMES), all_names: names.length };
  },
  async events(time, rows, { order, ...more }) {
    const found = [...selected(times(time), rows, more)];
    const length = (event) => store.end[event] - store.start[event];
    const all = found.length;
    found.sort((a, b) => (order === "duration" ? length(b) - length(a) : 0) || store.start[a] - store.start[b] || a - b);
    const event = found.slice(0, MOST_EVENTS);
    return {
      all, event, start_ns: event.map((one) => store.start[one]), duration_ns: event.map(length), name: event.map((one) => store.name[one]),
      row: event.map((one) => subtrackOf(one).row), id: event.map((one) => String(store.id[one])),
    };
  },
  async next(time, rows, { name, after, back, ...more }) {
    const events = [...selected(times(time), rows, more)].filter((event) => store.name[event] === name);
    const order = (a, b) => store.start[a] - store.start[b] || a - b;
    events.sort(order);
    const count = events.length;
    if (!count) throw new Failure("no event of the selection has that name");
    let place = back ? count - 1 : 0;
    if (after !== undefined && back) {
      const before = partition(count, (at) => order(events[at], after) < 0);
      place = before ? before - 1 : count - 1;
    } else if (after !== undefined) place = partition(count, (at) => order(events[at], after) <= 0) % count;
    return { event: events[place], place: place + 1, of: count };
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
  alive: async () => undefined,
};

/** What only a server answers fails with words that say so. */
for (const name of ["grown", "align", "deltas", "query", "queries", "report", "tree", "code", "derive", "span", "waits"]) server[name] = async () => { throw new Failure(OF_SERVER); };
