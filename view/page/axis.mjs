// The time axis: from times to pixels, and where its marks are.

import { time } from "./format.mjs";

/** Steps between marks are 1, 2 or 5 times a power of ten. */
export function step(from, to, width, apart = 110) {
  const least = ((to - from) * apart) / Math.max(width, 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least) ?? 10 * power;
}

/** Marks of a view: time, pixel and label of each. */
export function marks(from, to, width) {
  const size = step(from, to, width);
  const found = [];
  for (let at = Math.ceil(from / size) * size; at <= to; at += size) {
    found.push({ at, x: ((at - from) / (to - from)) * width, label: time(at, size) });
  }
  return found;
}

/** The part of the trace that is looked at, ns since its begin. */
export class View {
  /** @param {number} span length of the trace, ns */
  constructor(span, least = 20) {
    this.span = Math.max(span, 1);
    this.least = least;
    this.whole();
  }

  /** All of the trace, with a little room at its ends. */
  whole() {
    const room = Math.max(this.span * 0.01, 10);
    this.set(-room, this.span + room);
  }

  get length() {
    return this.to - this.from;
  }

  set(from, to) {
    const most = Math.max(this.span * 1.2, 100);
    const length = Math.min(Math.max(to - from, this.least), most);
    const middle = (from + to) / 2;
    const begin = Math.min(Math.max(middle - length / 2, -0.9 * length), this.span - 0.1 * length);
    this.from = begin;
    this.to = begin + length;
  }

  /** Zooms by a factor; what is at `at` stays where it is. */
  zoom(factor, at) {
    const length = Math.min(Math.max(this.length * factor, this.least), Math.max(this.span * 1.2, 100));
    const share = (at - this.from) / this.length;
    this.set(at - share * length, at + (1 - share) * length);
  }

  pan(ns) {
    this.set(this.from + ns, this.to + ns);
  }

  x(at, width) {
    return ((at - this.from) / this.length) * width;
  }

  at(x, width) {
    return this.from + (x / width) * this.length;
  }
}
