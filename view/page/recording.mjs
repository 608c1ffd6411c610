// Times in which a process was not recorded, or records of it were lost: a row above its threads, and stripes where nothing could be seen.

import { LOST, STOPPED } from "./colour.mjs";
import { subtracksOf, merged, tileOf } from "./own.mjs";

/**
 * @typedef {object} Span
 * @property {string} group key of the process's group
 * @property {"stopped" | "lost"} what
 * @property {number} start_ns
 * @property {number} duration_ns
 * @property {string} text
 * @property {number} session
 * @property {[string, number][]} lost how many records of each cause
 * @property {boolean} is_vague whether it is only known in which session this was
 */

/** The rows of one reading of a trace. */
export class Recording {
  /**
   * @param {Span[]} spans
   * @param {import("./own.mjs").OwnNames} names
   * @param {() => number} next a number for another row
   */
  constructor(spans, names, next) {
    /** Tracks by the key of their group. */
    this.tracks = new Map();
    /** Tiles by their row. @type {Map<number, any>} */
    this.tiles = new Map();
    /** Times without recording by the key of their group. @type {Map<string, [number, number][]>} */
    this.stopped = new Map();
    this.spans = new Map();
    const byGroup = new Map();
    for (const span of spans) byGroup.set(span.group, [...(byGroup.get(span.group) ?? []), span]);
    const row = (of) => {
      const number = next();
      this.tiles.set(number, tileOf(number, of, names));
      this.spans.set(number, of.map(({ span }) => span));
      return number;
    };
    for (const [group, all] of byGroup) {
      const events = all.map((span) => ({
        start: span.start_ns, length: span.duration_ns, name: span.text, event: null, kind: span.what === "lost" ? LOST : STOPPED, span,
      }));
      const { subtracks, left } = subtracksOf(events);
      const key = `${group}.recording`;
      this.tracks.set(group, { key, label: "recording", rows: subtracks.map(row), busy: row(merged(events)), events: events.length, not_shown: left });
      this.stopped.set(group, all.filter(({ what }) => what === "stopped").map(({ start_ns, duration_ns }) => [start_ns, start_ns + duration_ns]));
    }
  }

  /** The span that a run of one of these rows is. @returns {Span | undefined} */
  span({ row, event }) {
    return this.spans.get(row)?.[-1 - event];
  }
}
