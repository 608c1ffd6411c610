// Subtracks that the page makes of events it has: rows of an answer in SQL, hits of a search. Their rows have numbers below zero.

const MOST_SUBTRACKS = 24;

/**
 * @typedef {object} Own an event of such a subtrack
 * @property {number} start ns
 * @property {number} length ns
 * @property {string} name
 * @property {number | null} event the event of the trace that it is, if it is one
 * @property {number} [kind] by which its name is coloured
 */

/** Subtracks for events, so that none covers another: each takes the first that is free; what finds none is counted. @param {Own[]} events */
export function subtracksOf(events) {
  const sorted = [...events].sort((one, other) => one.start - other.start || other.length - one.length);
  const subtracks = [];
  const ends = [];
  let left = 0;
  for (const event of sorted) {
    let subtrack = ends.findIndex((end) => end <= event.start);
    if (subtrack < 0) subtrack = ends.length;
    if (subtrack >= MOST_SUBTRACKS) {
      left += 1;
      continue;
    }
    if (subtrack === subtracks.length) subtracks.push([]);
    subtracks[subtrack].push(event);
    ends[subtrack] = event.start + event.length;
  }
  return { subtracks, left };
}

/** Times in which any of the events runs, by their begin. @param {Own[]} events */
export function merged(events) {
  const sorted = [...events].sort((one, other) => one.start - other.start);
  const found = [];
  for (const { start, length, name, kind } of sorted) {
    const last = found.at(-1);
    if (last && start < last.start + last.length) last.length = Math.max(last.length, start + length - last.start);
    else found.push({ start, length, name, kind, event: null });
  }
  return found;
}

/** The names that subtracks of the page use: numbers below zero, so that they are none of the trace's. */
export class OwnNames {
  constructor() {
    this.of = new Map();
    this.texts = [];
    this.kinds = [];
  }

  /** @param {number} [kind] by which it is coloured */
  number(text, kind = 0) {
    const key = `${kind} ${text}`;
    if (!this.of.has(key)) {
      this.texts.push(text);
      this.kinds.push(kind);
      this.of.set(key, -this.texts.length);
    }
    return this.of.get(key);
  }

  kind(number) {
    return this.kinds[-number - 1] ?? 0;
  }

  text(number) {
    return this.texts[-number - 1];
  }
}

/** Events as one tile for all of the trace, whose buckets are 1 ns. @param {Own[]} events */
export function tileOf(row, events, names) {
  const column = (Kind, value) => Kind.from(events, value);
  return {
    level: 0,
    tile: 0,
    row,
    event: column(Int32Array, (event, at) => event.event ?? -1 - at),
    name: column(Int32Array, (event) => names.number(event.name, event.kind)),
    count: column(Uint32Array, () => 1),
    first: column(Float64Array, (event) => event.start),
    // What has no duration is seen all the same.
    length: column(Float64Array, (event) => Math.max(event.length, 1)),
    busy: column(Uint8Array, () => 255),
  };
}
