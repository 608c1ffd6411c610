// What rows of a page without a server show from afar: as view/src/pyramid.rs, counters.rs and tiles.rs have it, run by run.

import { Failure } from "./stored.mjs";
import { BUCKETS } from "./tiles.mjs";

const TOP_LEVEL = 54;
const FEW_EVENTS = 1024;
const FEW_BUCKETS = 64;

/** Events beside each other: none begins before the one in front of it has ended. */
export class Spans {
  /**
   * @param {Float64Array} start
   * @param {Float64Array} end
   * @param {Uint32Array} event the event that stands for each
   * @param {Float64Array} duration its duration
   */
  constructor(start, end, event, duration) {
    Object.assign(this, { start, end, event, duration });
  }

  get count() {
    return this.start.length;
  }

  /** The first that ends behind a time, or begins there or later. */
  firstAt(time) {
    return partition(this.count, (place) => this.end[place] <= time && this.start[place] < time);
  }
}

/** The first place for which something is not so. @param {(place: number) => boolean} isSo */
export function partition(count, isSo) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (isSo(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Times in which any of several events runs, each with the longest of those that do. */
export function busySpans(spans) {
  const count = spans.reduce((sum, one) => sum + one.count, 0);
  const order = new Array(count);
  let at = 0;
  for (const one of spans) for (let place = 0; place < one.count; place += 1) order[at++] = [one.start[place], one.end[place], one.event[place]];
  order.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const [start, end, event, duration] = [[], [], [], []];
  for (const [from, to, of] of order) {
    const last = end.length - 1;
    if (last >= 0 && from < end[last]) {
      end[last] = Math.max(end[last], to);
      if (to - from > duration[last]) [duration[last], event[last]] = [to - from, of];
    } else {
      start.push(from);
      end.push(to);
      event.push(of);
      duration.push(to - from);
    }
  }
  return new Spans(Float64Array.from(start), Float64Array.from(end), Uint32Array.from(event), Float64Array.from(duration));
}

/** The highest bit in which two whole numbers differ, counted from 1. */
function differing(one, other) {
  const high = (Math.floor(one / 2 ** 32) ^ Math.floor(other / 2 ** 32)) >>> 0;
  return high ? 64 - Math.clz32(high) : 32 - Math.clz32((one ^ other) >>> 0);
}

/** The first even level with at most a quarter as many buckets as there are starts. */
function firstLevel(count, startOf) {
  const bits = new Uint32Array(65);
  for (let place = 1; place < count; place += 1) bits[differing(startOf(place), startOf(place - 1))] += 1;
  let buckets = count;
  for (let level = 0; level < TOP_LEVEL; level += 1) {
    buckets -= bits[level];
    if (level % 2 === 0 && buckets <= Math.floor(count / 4)) return level;
  }
  return TOP_LEVEL;
}

/** Adds a run behind others: its first bucket may be their last one. */
function add(runs, first, length, busy, of, count) {
  const last = runs[runs.length - 1];
  if (!last || last.first !== first) {
    runs.push({ first, length, busy, duration: of.duration, event: of.event, count });
    return;
  }
  last.count += count;
  last.busy += busy;
  if (of.duration > last.duration) [last.duration, last.event] = [of.duration, of.event];
}

function spread(runs, of, first, last, [inFirst, between, inLast], count) {
  add(runs, first, 1, inFirst, of, count);
  if (last > first + 1) add(runs, first + 1, last - first - 1, between, of, 0);
  if (last > first) add(runs, last, 1, inLast, of, 0);
}

function ofEvents(spans, level, from, to) {
  const runs = [];
  const size = 2 ** level;
  for (let place = from; place < to; place += 1) {
    const [start, end] = [spans.start[place], spans.end[place]];
    const first = Math.floor(start / size);
    const last = end > start ? Math.floor((end - 1) / size) : first;
    const of = { event: spans.event[place], duration: spans.duration[place] };
    const busy = [Math.min(end, (first + 1) * size) - start, Math.max(0, last - first - 1) * size, Math.max(0, end - last * size)];
    spread(runs, of, first, last, busy, 1);
  }
  return runs;
}

function ofRuns(fine, finer) {
  const runs = [];
  const times = 2 ** finer;
  for (const run of fine) {
    const per = Math.floor(run.busy / run.length);
    const end = run.first + run.length;
    const [first, last] = [Math.floor(run.first / times), Math.floor((end - 1) / times)];
    const busy = [(Math.min(end, (first + 1) * times) - run.first) * per, Math.max(0, last - first - 1) * times * per, Math.max(0, end - last * times) * per];
    spread(runs, run, first, last, busy, run.count);
  }
  return runs;
}

/** The parts of runs that lie in these buckets. */
function cut(runs, from, to) {
  const found = [];
  for (const run of runs) {
    const [first, end] = [Math.max(run.first, from), Math.min(run.first + run.length, to)];
    if (first >= end) continue;
    const isCut = end - first < run.length;
    found.push({
      ...run, first, length: end - first,
      busy: isCut ? Math.round((run.busy / run.length) * (end - first)) : run.busy,
      count: first > run.first ? 0 : run.count,
    });
  }
  return found;
}

/** The part of runs in order that touches these buckets. */
function touching(runs, from, to) {
  const first = partition(runs.length, (place) => runs[place].first + runs[place].length <= from);
  return runs.slice(first, Math.max(first, partition(runs.length, (place) => runs[place].first < to)));
}

/** The levels that are kept of something: of its parts the first one, of each further one that before. */
function levels(count, startOf, end, finest, coarser) {
  if (count < FEW_EVENTS) return [];
  const level = firstLevel(count, startOf);
  return withCoarser({ level, runs: finest(level) }, [startOf(0), end], coarser);
}

/** A level, and those that are coarser, up to one with few buckets. */
function withCoarser(finest, [begin, end], coarser) {
  const kept = [finest];
  for (;;) {
    const { level, runs } = kept.at(-1);
    if (Math.floor(end / 2 ** level) - Math.floor(begin / 2 ** level) < FEW_BUCKETS || level + 2 > TOP_LEVEL) return kept;
    kept.push({ level: level + 2, runs: coarser(runs, 2) });
  }
}

/** The levels of a page that has no finer one than this. */
function stored(finest, coarser) {
  const { level, runs } = finest;
  if (!runs.length) return [finest];
  return withCoarser(finest, [runs[0].first * 2 ** level, (runs.at(-1).first + runs.at(-1).length) * 2 ** level], coarser);
}

/** Runs of a level as those of a finer one, whose buckets lie inside of theirs. */
function stretched({ level: kept, runs }, level, from, to) {
  const times = 2 ** (kept - level);
  const part = touching(runs, Math.floor(from / times), Math.ceil(to / times));
  return part.map((run) => ({ ...run, first: run.first * times, length: run.length * times }));
}

/** What a row of events shows from afar. */
class Runs {
  /** The runs of a level in buckets; beside each other those of one event are one. */
  runs(level, from, to) {
    const kept = this.levels.findLast((one) => one.level <= level);
    let runs;
    if (kept) {
      const times = 2 ** (level - kept.level);
      const part = touching(kept.runs, from * times, to * times);
      runs = level === kept.level ? part : ofRuns(part, level - kept.level);
    } else runs = this.finer(level, from, to);
    const joined = [];
    for (const run of cut(runs, from, to)) {
      const last = joined.at(-1);
      if (last && last.event === run.event && last.first + last.length === run.first) {
        last.length += run.length;
        last.busy += run.busy;
        last.count += run.count;
      } else joined.push(run);
    }
    return joined;
  }
}

/** That of events which the page has. */
export class Pyramid extends Runs {
  /** @param {Spans} spans */
  constructor(spans) {
    super();
    this.spans = spans;
    const { count, start, end } = spans;
    this.levels = levels(count, (place) => start[place], end[count - 1], (level) => ofEvents(spans, level, 0, count), ofRuns);
  }

  finer(level, from, to) {
    const { spans } = this;
    const size = 2 ** level;
    const first = spans.firstAt(from * size);
    return ofEvents(spans, level, first, Math.max(first, partition(spans.count, (place) => spans.start[place] < to * size)));
  }
}

/** That of a page which has the runs of one level in place of events. */
export class StoredRuns extends Runs {
  /** @param {{level: number, runs: any[]}} finest */
  constructor(finest) {
    super();
    this.levels = stored(finest, ofRuns);
  }

  finer(level, from, to) {
    return stretched(this.levels[0], level, from, to);
  }
}

/** What a counter shows from afar. */
class Bands {
  /** The bands of a level in buckets. */
  bands(level, from, to) {
    const kept = this.levels.findLast((one) => one.level <= level);
    let bands;
    if (kept) {
      const times = 2 ** (level - kept.level);
      bands = coarserBands(touching(kept.runs, from * times, to * times), level - kept.level);
    } else bands = this.finer(level, from, to);
    return bands.flatMap((band) => {
      const [first, end] = [Math.max(band.first, from), Math.min(band.first + band.length, to)];
      return first < end ? [{ ...band, first, length: end - first, count: first > band.first ? 0 : band.count }] : [];
    });
  }
}

/** That of a page which has the bands of one level in place of values. */
export class StoredBands extends Bands {
  /** @param {{level: number, runs: any[]}} finest */
  constructor(finest) {
    super();
    this.levels = stored(finest, coarserBands);
  }

  finer(level, from, to) {
    return stretched(this.levels[0], level, from, to);
  }
}

/** Values of a counter, each of which holds until the next one begins. */
export class Steps extends Bands {
  /**
   * @param {Float64Array} start
   * @param {Float64Array} number
   * @param {number} end
   * @param {Map<number, string>} digits what numbers cannot be exactly
   */
  constructor(start, number, end, digits) {
    super();
    Object.assign(this, { start, number, end, digits });
    this.levels = levels(start.length, (place) => start[place], end, (level) => this.bandsOf(level, 0, start.length), coarserBands);
  }

  times(place) {
    return [this.start[place], place + 1 < this.start.length ? this.start[place + 1] : this.end];
  }

  text(place) {
    return this.digits.get(place) ?? String(this.number[place]);
  }

  /** The place of the value at a time; -1 where there is none. */
  at(time) {
    const place = partition(this.start.length, (one) => this.start[one] <= time) - 1;
    if (place < 0) return -1;
    const [start, end] = this.times(place);
    return time < end || time === start ? place : -1;
  }

  /** The first of the values that hold in a time, and the one behind the last. */
  within(from, to) {
    const end = partition(this.start.length, (place) => this.start[place] < to);
    let first = Math.max(0, partition(this.start.length, (place) => this.start[place] <= from) - 1);
    if (this.at(from) < 0 && this.start[0] < from) first = this.start.length;
    return [Math.min(first, end), end];
  }

  bandsOf(level, from, to) {
    const bands = [];
    const size = 2 ** level;
    for (let place = from; place < to; place += 1) {
      const [start, end] = this.times(place);
      const first = Math.floor(start / size);
      const last = end > start ? Math.floor((end - 1) / size) : first;
      const value = this.number[place];
      addBand(bands, { first, length: 1, least: value, greatest: value, count: 1 });
      if (last > first + 1) addBand(bands, { first: first + 1, length: last - first - 1, least: value, greatest: value, count: 0 });
      if (last > first) addBand(bands, { first: last, length: 1, least: value, greatest: value, count: 0 });
    }
    return bands;
  }

  finer(level, from, to) {
    return this.bandsOf(level, ...this.within(from * 2 ** level, to * 2 ** level));
  }
}

function addBand(bands, band) {
  const last = bands[bands.length - 1];
  if (!last || last.first !== band.first) bands.push(band);
  else {
    last.least = Math.min(last.least, band.least);
    last.greatest = Math.max(last.greatest, band.greatest);
    last.count += band.count;
  }
}

function coarserBands(fine, finer) {
  const bands = [];
  const times = 2 ** finer;
  for (const band of fine) {
    const [first, last] = [Math.floor(band.first / times), Math.floor((band.first + band.length - 1) / times)];
    addBand(bands, { ...band, first, length: 1 });
    if (last > first + 1) addBand(bands, { ...band, first: first + 1, length: last - first - 1, count: 0 });
    if (last > first) addBand(bands, { ...band, first: last, length: 1, count: 0 });
  }
  return bands;
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

/** Runs of one tile: what its columns have of each. */
function sent(shown, nameOf, level, from, to) {
  if (shown.runs) {
    return shown.runs(level, from, to).map((run) => [run.event, nameOf(run.event), Math.min(run.count, 2 ** 32 - 1), run.first - from, run.length, share(run, level)]);
  }
  const found = [];
  let end = 0;
  for (const band of shown.bands(level, from, to)) {
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

/**
 * Tiles as a server answers them.
 * @param {(row: number) => Runs | Bands | null} shownOf what a row shows
 * @param {(event: number) => number} nameOf
 * @returns {import("./tiles.mjs").Tile[]}
 */
export function tilesOfRows(shownOf, nameOf, { level, first, tiles, rows }) {
  if (level % 2 || level > TOP_LEVEL) throw new Failure("no such level");
  return rows.flatMap((row) => Array.from({ length: tiles }, (_, number) => {
    const tile = first + number;
    const shown = shownOf(row);
    const runs = shown ? sent(shown, nameOf, level, tile * BUCKETS, (tile + 1) * BUCKETS) : [];
    const column = (Kind, place) => Kind.from(runs, (run) => run[place]);
    return {
      level, tile, row, event: column(Uint32Array, 0), name: column(Uint32Array, 1), count: column(Uint32Array, 2),
      first: column(Uint16Array, 3), length: column(Uint16Array, 4), busy: column(Uint8Array, 5),
    };
  }));
}
