// The answers of a page that carries levels in place of events: what rows show from afar, down to its finest level.

import { count, duration, exact } from "./format.mjs";
import { StoredBands, StoredRuns, tilesOfRows } from "./runs.mjs";
import { Failure, Numbers, carried, column } from "./stored.mjs";

/** Buckets of the finest level that a view has at least. */
const LEAST_BUCKETS = 16;

export { Failure };

/** What the columns hold. @type {any} */
let store = null;

const read = async () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const names = ["gap", "length", "count", "busy", "name", "duration", "value"];
  const bytes = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await column(name)])));
  const of = Object.fromEntries(names.map((name) => [name, new Numbers(bytes[name])]));
  const values = new DataView(bytes.value.buffer);
  const { level } = data;
  // An event is the number of the first run that shows it.
  const runs = [];
  const nextRun = (first) => {
    const length = of.length.next();
    const run = { first, length, count: of.count.next(), busy: Math.round((bytes.busy[runs.length] * length * 2 ** level) / 255) };
    const name = of.name.next();
    const { event, duration } = name ? { event: runs.length, duration: of.duration.next() } : runs[runs.length - 1];
    runs.push(Object.assign(run, { event, duration, name: name - 1 }));
    return run;
  };
  let value = 0;
  const nextBand = (first) => {
    const [least, greatest] = [0, 4].map((at) => values.getFloat32(8 * value + at, true));
    value += 1;
    return { first, length: of.length.next(), count: of.count.next(), least, greatest };
  };
  const shown = data.rows.map(({ runs, bands }) => {
    const all = [];
    let end = 0;
    for (let place = 0; place < (runs ?? bands); place += 1) {
      all.push((bands === undefined ? nextRun : nextBand)(end + of.gap.next()));
      end = all[place].first + all[place].length;
    }
    return new (bands === undefined ? StoredRuns : StoredBands)({ level, runs: all });
  });
  const { file } = data.trace.facts;
  const word = /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
  const each = `Each event: rpd view ${word}; of a part: rpd export timeline ${word} --in 25%..30%.`;
  const note = `This page has levels and not single events: in each ${duration(2 ** level)} of a row the name of what takes longest there, and how busy it is. ${each}`;
  store = { ...data, trace: { ...data.trace, notes: [note], least_ns: LEAST_BUCKETS * 2 ** level }, shown, runs, each };
};

export const server = {
  ...carried,
  async trace() {
    if (!store) await read();
    return store.trace;
  },
  async tiles(level, first, tiles, rows) {
    return tilesOfRows((row) => store.shown[row], (event) => store.runs[event].name, { level, first, tiles, rows });
  },
  names: async (from) => store.names.slice(from, from + 4096),
  /** Says what is known of an event, which is not all that a page shows of one. */
  async event({ event, move }) {
    const run = move ? undefined : store.runs[event];
    if (!run) throw new Failure(`Not in a page that has levels. ${store.each}`);
    const size = 2 ** store.level;
    const others = run.count > 1 ? ` of ${count(run.count)} that begin` : "";
    throw new Failure(`${store.names[run.name][0]} takes ${duration(run.duration)}. It is the longest${others} in the ${duration(size)} at ${exact(run.first * size)}. ${store.each}`);
  },
  async search() {
    throw new Failure("no search in a page that has levels");
  },
};

/** What only events answer fails with words that say so. */
for (const name of ["hit", "statistics", "events", "next", "value", "grown", "align", "deltas", "query", "queries", "report", "tree", "code", "derive", "span", "waits"]) {
  server[name] = async () => { throw new Failure(`Not in a page that has levels. ${store.each}`); };
}
