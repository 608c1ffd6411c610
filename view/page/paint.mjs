// From runs to pixels: a line of them for each row, copied down, one picture for all.
//
// Nothing larger than rows times pixels is ever drawn, however many events there are.

import { BUCKETS, values } from "./tiles.mjs";

/** A pixel of opaque red, green and blue, as the picture's bytes lie in a number of this machine. */
export const pixel = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

export const mixed = (back, fore, share) => {
  const part = (shift) => {
    const from = (back >>> shift) & 255;
    return (from + (((fore >>> shift) & 255) - from) * share) & 255;
  };
  return ((255 << 24) | (part(16) << 16) | (part(8) << 8) | part(0)) >>> 0;
};

/** Lines of a picture: room for one row's pixels, used again for each. */
export class Line {
  constructor(width) {
    this.width = width;
    this.pixels = new Uint32Array(width);
    this.share = new Float32Array(width);
    this.best = new Float32Array(width);
    // Names of the page's own are below zero.
    this.of = new Int32Array(width);
    this.event = new Int32Array(width);
    this.edge = new Uint8Array(width);
    this.least = new Float32Array(width);
    this.greatest = new Float32Array(width);
  }

  /** Finds for each pixel the least and the greatest value of a counter there; NaN where it has none. */
  gatherValues(known, view) {
    const { width, least, greatest } = this;
    least.fill(NaN);
    greatest.fill(NaN);
    const scale = width / (view.to - view.from);
    for (const { tile, from, to } of known) {
      const size = 2 ** tile.level;
      const base = tile.tile * BUCKETS * size;
      const [low, high] = values(tile);
      for (let run = 0; run < tile.first.length; run += 1) {
        const begin = Math.max(base + tile.first[run] * size, from);
        const end = Math.min(base + (tile.first[run] + tile.length[run]) * size, to);
        const left = (begin - view.from) * scale;
        const right = (end - view.from) * scale;
        if (begin >= end || right <= 0 || left >= width) continue;
        const lastPixel = Math.min(width - 1, Math.ceil(right) - 1);
        for (let x = Math.max(0, Math.floor(left)); x <= lastPixel; x += 1) {
          least[x] = least[x] <= low[run] ? least[x] : low[run];
          greatest[x] = greatest[x] >= high[run] ? greatest[x] : high[run];
        }
      }
    }
  }

  /**
   * Finds for each pixel how busy it is and which name has most of it.
   * @param {{tile: import("./tiles.mjs").Tile, from: number, to: number}[]} known
   * @param {{from: number, to: number}} view
   */
  gather(known, view) {
    const { width, share, best, of, edge } = this;
    share.fill(0);
    best.fill(0);
    edge.fill(0);
    const scale = width / (view.to - view.from);
    let before = -1;
    for (const { tile, from, to } of known) {
      const size = 2 ** tile.level;
      const base = tile.tile * BUCKETS * size;
      const { first, length, busy, name, event } = tile;
      for (let run = 0; run < first.length; run += 1) {
        const begin = Math.max(base + first[run] * size, from);
        const end = Math.min(base + (first[run] + length[run]) * size, to);
        if (begin >= end) continue;
        const isNew = event[run] !== before;
        before = event[run];
        const left = (begin - view.from) * scale;
        const right = (end - view.from) * scale;
        if (right <= 0 || left >= width) continue;
        const part = busy[run] / 255;
        const firstPixel = Math.max(0, Math.floor(left));
        const lastPixel = Math.min(width - 1, Math.ceil(right) - 1);
        if (isNew && right - left >= 3 && left >= 0) edge[firstPixel] = 1;
        for (let x = firstPixel; x <= lastPixel; x += 1) {
          const covered = (Math.min(right, x + 1) - Math.max(left, x)) * part;
          share[x] += covered;
          if (covered > best[x] || best[x] === 0) {
            best[x] = Math.max(covered, 1e-6);
            of[x] = name[run];
            this.event[x] = event[run];
          }
        }
      }
    }
  }

  /** The pixels of a row of events. `colour` gives the pixel of a name of an event; where something is, something is seen. */
  events(back, colour, least = 0.3) {
    const { width, pixels, share, best, of, event, edge } = this;
    for (let x = 0; x < width; x += 1) {
      if (best[x] === 0) pixels[x] = back;
      else {
        const amount = Math.max(least, Math.min(1, share[x]));
        pixels[x] = mixed(back, colour(of[x], event[x]), edge[x] ? amount * 0.55 : amount);
      }
    }
    return pixels;
  }
}

/** Where ink lies on events of a kind, so that kinds differ by more than their colour: numbers of kinds as the server has them. */
const HATCHES = {
  1: (x, y) => y % 4 === 0,
  2: (x, y) => x % 4 === 0 && y % 4 === 0,
  3: (x, y) => (x + y) % 6 === 0,
  4: (x, y) => x % 6 === 0,
  6: (x, y) => (x - y + 4096) % 4 === 0,
  7: (x, y) => y % 6 === 2,
};

/** Draws ink on the events of a line that lies from `top` for `height` lines, below their labels, for those who want more contrast. */
export function hatch(picture, width, { best, of }, kindOf, top, height, ink) {
  for (let x = 0; x < width; x += 1) {
    const has = best[x] === 0 ? undefined : HATCHES[kindOf(of[x])];
    if (!has) continue;
    for (let y = Math.floor(height * 0.7); y < height; y += 1) if (has(x, y)) picture[(top + y) * width + x] = ink;
  }
}

/** Draws stripes on what is empty between two columns of a picture: nothing is known of that time. */
export function stripe(picture, width, [left, right], top, height, back, ink) {
  for (let y = top; y < top + height; y += 1) {
    for (let x = left + ((7 - ((left + y) % 7)) % 7); x < right; x += 7) {
      if (picture[y * width + x] === back) picture[y * width + x] = ink;
    }
  }
}

/** Copies a line into a picture, from `top` for `height` lines. */
export function copyDown(picture, width, line, top, height) {
  for (let y = top; y < top + height; y += 1) picture.set(line, y * width);
}

/**
 * Draws a counter as steps, filled below: in each pixel from its least to its greatest value, and from where the pixel in front of it ends.
 * @param {[number, number]} range values at the bottom and at the top
 */
export function steps(picture, width, { least, greatest }, [top, height], [from, to], { back, fore, area }) {
  const y = (value) => Math.round((1 - (value - from) / (to - from || 1)) * (height - 1));
  let before = null;
  for (let x = 0; x < width; x += 1) {
    if (Number.isNaN(least[x])) {
      before = null;
      for (let row = 0; row < height; row += 1) picture[(top + row) * width + x] = back;
      continue;
    }
    let [high, low] = [y(greatest[x]), y(least[x])];
    const own = [high, low];
    if (before && before[1] < high) high = before[1];
    if (before && before[0] > low) low = before[0];
    before = own;
    for (let row = 0; row < height; row += 1) {
      picture[(top + row) * width + x] = row < high ? back : row <= low ? fore : area;
    }
  }
}

/** Draws shares of 1 as bars from the bottom of a part of the picture. */
export function bars(picture, width, share, top, height, back, fore) {
  for (let y = 0; y < height; y += 1) {
    const at = (top + y) * width;
    const level = (height - y) / height;
    const below = (height - y - 1) / height;
    for (let x = 0; x < width; x += 1) {
      const value = share[x] > 0 ? Math.max(Math.min(share[x], 1), 1 / height) : 0;
      picture[at + x] = value >= level ? fore : value > below ? mixed(back, fore, (value - below) * height) : back;
    }
  }
}
