// Tiles of runs: what the server answers, decoded without a copy, and those that are kept.

export const BUCKETS = 512;
const MAGIC = 0x74647072;
const HEADER = 8;
const RUN_BYTES = 17;

/**
 * @typedef {object} Tile runs of one row in 512 buckets of 2^level ns
 * @property {number} level
 * @property {number} tile
 * @property {number} row
 * @property {Uint32Array} event
 * @property {Uint32Array} name
 * @property {Uint32Array} count
 * @property {Uint16Array} first
 * @property {Uint16Array} length
 * @property {Uint8Array} busy
 */

/** The tiles of an answer. @param {ArrayBuffer} buffer @returns {Tile[]} */
export function decode(buffer) {
  if (buffer.byteLength < 4 * HEADER) throw new Error("the answer is too short");
  const [magic, version, level, rows, tiles, runs, low, high] = new Uint32Array(buffer, 0, HEADER);
  if (magic !== MAGIC || version !== 1) throw new Error("the answer is of another version: reload the page");
  const numbers = new Uint32Array(buffer, 4 * HEADER, rows);
  const counts = new Uint32Array(buffer, 4 * (HEADER + rows), rows * tiles);
  let at = 4 * (HEADER + rows + rows * tiles);
  if (buffer.byteLength !== at + RUN_BYTES * runs) throw new Error("the answer is cut off");
  const column = (Kind) => {
    const found = new Kind(buffer, at, runs);
    at += found.byteLength;
    return found;
  };
  const [event, name, count] = [column(Uint32Array), column(Uint32Array), column(Uint32Array)];
  const [first, length, busy] = [column(Uint16Array), column(Uint16Array), column(Uint8Array)];
  const firstTile = low + high * 2 ** 32;
  const found = [];
  let from = 0;
  counts.forEach((size, number) => {
    const part = (whole) => whole.subarray(from, from + size);
    found.push({
      level,
      tile: firstTile + (number % tiles),
      row: numbers[Math.floor(number / tiles)],
      event: part(event),
      name: part(name),
      count: part(count),
      first: part(first),
      length: part(length),
      busy: part(busy),
    });
    from += size;
  });
  return found;
}

/** Of a tile of a counter the least and the greatest value of each run. @param {Tile} tile @returns {[Float32Array, Float32Array]} */
export function values({ event, name }) {
  return [event, name].map((column) => new Float32Array(column.buffer, column.byteOffset, column.length));
}

/** The level whose buckets are at most half of a pixel. */
export function levelFor(nsPerPixel) {
  const level = Math.floor(Math.log2(Math.max(nsPerPixel / 2, 1)) + 1e-9);
  return Math.min(54, level - (level % 2));
}

/** The tiles of a level that a time touches: first, and behind the last. */
export function tilesOf(level, from, to, span) {
  const size = BUCKETS * 2 ** level;
  const last = Math.floor(Math.max(span, 0) / size);
  const first = Math.max(0, Math.floor(from / size));
  const end = Math.min(last, Math.floor(to / size)) + 1;
  return [Math.min(first, end), end];
}

/** Tiles that are kept; the ones longest out of use go first. */
export class Cache {
  constructor(most = 64 << 20) {
    this.most = most;
    this.bytes = 0;
    /** @type {Map<string, Tile>} */
    this.tiles = new Map();
  }

  static size(tile) {
    return 200 + RUN_BYTES * tile.event.length;
  }

  /** @param {Tile} tile */
  add(tile) {
    const key = `${tile.level}/${tile.tile}/${tile.row}`;
    const known = this.tiles.get(key);
    if (known) this.bytes -= Cache.size(known);
    this.tiles.delete(key);
    this.tiles.set(key, tile);
    this.bytes += Cache.size(tile);
    for (const [oldest, old] of this.tiles) {
      if (this.bytes <= this.most || oldest === key) break;
      this.tiles.delete(oldest);
      this.bytes -= Cache.size(old);
    }
  }

  get(level, tile, row) {
    const key = `${level}/${tile}/${row}`;
    const found = this.tiles.get(key);
    if (found) {
      this.tiles.delete(key);
      this.tiles.set(key, found);
    }
    return found;
  }

  has(level, tile, row) {
    return this.tiles.has(`${level}/${tile}/${row}`);
  }

  /**
   * What is known of a row in a time: tiles of the level, in place of missing ones coarser ones. Each with the part of time that it is for.
   * @returns {{tile: Tile, from: number, to: number}[]}
   */
  known(level, row, from, to, span) {
    const [first, end] = tilesOf(level, from, to, span);
    const found = [];
    for (let tile = first; tile < end; tile += 1) {
      for (let coarser = level; coarser <= 54; coarser += 2) {
        const number = Math.floor(tile / 2 ** (coarser - level));
        const there = this.get(coarser, number, row);
        if (!there) continue;
        const size = BUCKETS * 2 ** level;
        const last = found.at(-1);
        if (last && last.tile === there) last.to = (tile + 1) * size;
        else found.push({ tile: there, from: tile * size, to: (tile + 1) * size });
        break;
      }
    }
    return found;
  }
}

/** The run of a tile at a time, otherwise one at most `near` ns away: its place; -1 where there is none. @param {Tile} tile */
export function runAt(tile, at, near = 0) {
  const size = 2 ** tile.level;
  const bucket = Math.floor(at / size) - tile.tile * BUCKETS;
  let low = 0;
  let high = tile.first.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tile.first[middle] <= bucket) low = middle + 1;
    else high = middle;
  }
  const place = low - 1;
  if (place >= 0 && bucket < tile.first[place] + tile.length[place]) return place;
  const base = tile.tile * BUCKETS;
  const before = place >= 0 ? at - (base + tile.first[place] + tile.length[place]) * size : Infinity;
  const behind = low < tile.first.length ? (base + tile.first[low]) * size - at : Infinity;
  if (near === 0 || Math.min(before, behind) > near) return -1;
  return before <= behind ? place : low;
}
