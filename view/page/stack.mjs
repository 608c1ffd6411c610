// Allocations above each other: each as high as it is large and as long as it lives, from the bottom in the order in which they were made.

import { mixed } from "./paint.mjs";

/** Blocks that are lower than this have no edge, pixels. */
const EDGE_FROM = 4;

export class Stack {
  /** @param {{start: number[], end: number[], bytes: number[], event: number[], name: number[], rest: number | null, others: number}} columns */
  constructor(columns) {
    Object.assign(this, columns);
    const { start, end } = this;
    // What is freed is so before something else is allocated at that time; what is never freed stays to the end.
    this.changes = start.flatMap((at, block) => (end[block] > at ? [[at, 1, block], [end[block], 0, block]] : []));
    this.changes.sort((one, other) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2]);
  }

  /** The blocks that live at a time, from the bottom, and the place of the first change behind it. */
  before(time) {
    const live = [];
    this.start.forEach((at, block) => at <= time && this.end[block] > time && live.push(block));
    let [low, high] = [0, this.changes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.changes[middle][0] <= time) low = middle + 1;
      else high = middle;
    }
    return { live, next: low };
  }

  sum(live) {
    return live.reduce((all, block) => all + this.bytes[block], 0);
  }

  /** Makes one change to the blocks that live; gives by how much there is more. */
  change(live, [, isBegin, block]) {
    let [low, high] = [0, live.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (live[middle] < block) low = middle + 1;
      else high = middle;
    }
    if (isBegin) live.splice(low, 0, block);
    else if (live[low] === block) live.splice(low, 1);
    else return 0;
    return isBegin ? this.bytes[block] : -this.bytes[block];
  }

  /**
   * Goes through the pixels of a view and gives for each the blocks that live in it when most is allocated.
   * @param {(x: number, live: number[], isNew: boolean) => void} give whether they are others than in the pixel before
   */
  each(view, width, give) {
    const { changes } = this;
    const before = this.before(view.from);
    const { live } = before;
    let { next } = before;
    let all = this.sum(live);
    const scale = (view.to - view.from) / width;
    let isNew = true;
    for (let x = 0; x < width; x += 1) {
      const from = view.from + x * scale;
      for (; next < changes.length && changes[next][0] <= from; next += 1) {
        all += this.change(live, changes[next]);
        isNew = true;
      }
      const until = view.from + (x + 1) * scale;
      let [most, sum, last] = [all, all, next];
      let end = next;
      for (; end < changes.length && changes[end][0] < until; end += 1) {
        const [, isBegin, block] = changes[end];
        sum += isBegin ? this.bytes[block] : -this.bytes[block];
        if (sum > most) [most, last] = [sum, end + 1];
      }
      const isChanged = last > next;
      while (next < last) all += this.change(live, changes[next++]);
      give(x, live, isNew || isChanged);
      isNew = isChanged || end > next;
      while (next < end) all += this.change(live, changes[next++]);
    }
  }

  /**
   * Draws the pixels of a part of a picture.
   * @param {{greatest: number, rest: (x: number) => number, colour: (block: number) => number, back: number, others: number}} of
   *   bytes of the whole height; bytes of what is not among the blocks; colours
   */
  draw(picture, width, [top, height], view, { greatest, rest, colour, back, others }) {
    const { bytes } = this;
    const column = new Uint32Array(height);
    const scale = height / Math.max(greatest, 1);
    let restBefore = -1;
    this.each(view, width, (x, live, isNew) => {
      const below = rest(x);
      if (isNew || below !== restBefore) {
        restBefore = below;
        column.fill(back);
        let sum = below;
        let from = Math.round(sum * scale);
        column.fill(others, Math.max(0, height - from));
        for (const block of live) {
          sum += bytes[block];
          const to = Math.min(height, Math.round(sum * scale));
          if (to <= from) continue;
          const ink = colour(block);
          column.fill(ink, height - to, height - from);
          if (to - from >= EDGE_FROM) column[height - to] = mixed(ink, back, 0.6);
          from = to;
        }
        // What is there is seen, however little it is.
        if (sum > 0 && from === 0) column[height - 1] = live.length ? colour(live[live.length - 1]) : others;
      }
      for (let y = Math.max(0, -top); y < height; y += 1) {
        const at = (top + y) * width + x;
        if (at >= picture.length) break;
        picture[at] = column[y];
      }
    });
  }

  /** The block at a pixel and a height of it, as [`draw`] has them; -1 where there is none. */
  at(view, width, x, y, height, { greatest, rest }) {
    const pixel = (view.to - view.from) / width;
    const from = view.from + Math.floor(x) * pixel;
    let found = -1;
    this.each({ from, to: from + pixel }, 1, (_, live) => {
      const wanted = ((height - y) / height) * Math.max(greatest, 1);
      let sum = rest(Math.floor(x));
      for (const block of live) {
        if (wanted >= sum && wanted < sum + this.bytes[block]) found = block;
        sum += this.bytes[block];
      }
    });
    return found;
  }
}
