// The timeline: rows of pixels, labels on them, and above these what moves with the pointer. Three canvases, so that a pointer that moves redraws
// no rows.

import { arranged, asFound } from "./arrangement.mjs";
import { View, marks } from "./axis.mjs";
import { colourOf, colourOfRatio } from "./colour.mjs";
import { duration, exact, percent, shown, time, valueOf } from "./format.mjs";
import { Labels } from "./labels.mjs";
import { layout, lineAt, linesOfRows } from "./layout.mjs";
import { OwnNames, subtracksOf, merged, tileOf } from "./own.mjs";
import { Line, bars, copyDown, hatch, mixed, pixel, steps, stripe } from "./paint.mjs";
import { Recording } from "./recording.mjs";
import { Stack } from "./stack.mjs";
import { BUCKETS, Cache, levelFor, runAt, tilesOf, values } from "./tiles.mjs";

const LABEL_FROM = 30;
const LABEL_MOST = 400;
const MOST_LABELS = 400;
const MOST_TILES = 8000;
const MOST_ARROWS = 200;
const NAMES = 4096;
const FONT = '11px system-ui, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif';

/** @param {string} id */
export const element = (id) => document.getElementById(id);

export class Timeline {
  /**
   * @param {any} trace what the server says of the trace
   * @param {any} server
   * @param {(failure: Error) => void} failed
   */
  constructor(trace, server, failed) {
    this.trace = trace;
    this.server = server;
    this.failed = failed;
    this.view = new View(trace.facts.span_ns, trace.least_ns);
    /** Groups that the page makes itself, by their key; tracks of others that are worked out on request. */
    this.own = new Map();
    this.worked = new Map();
    this.tiles = new Map();
    this.ownNames = new OwnNames();
    /** Allocations above each other, by their counter as it was answered. @type {WeakMap<any, Stack>} */
    this.stacks = new WeakMap();
    /** Rows of what was not recorded, by the trace as it was answered. @type {WeakMap<any, Recording>} */
    this.recordings = new WeakMap();
    this.arrangement = asFound();
    /** @type {(number | null)[]} */
    this.cursors = [null, null];
    this.cache = new Cache();
    this.closed = new Set();
    this.scroll = 0;
    this.names = [];
    this.kinds = [];
    /** Answers with names that were asked for, by their part. @type {Map<number, Promise<void>>} */
    this.asked = new Map();
    this.selected = null;
    this.links = [];
    /** What the selected event waited for, and what waited for it. */
    this.waits = null;
    /** The selected time, and its rows where they are not all. */
    this.choose(null);
    /** The event or run under the pointer. @type {{row: number, start_ns: number, duration_ns: number} | null} */
    this.hover = null;
    /** Which events are found by a search, while there is one. @type {((name: number, event: number) => boolean) | null} */
    this.isHit = null;
    /** How many times as long each name takes in the second of two traces, while colours say that. @type {Map<number, number> | null} */
    this.ratios = null;
    this.texts = [];
    /** @type {[number, string][]} */
    this.marks = [];
    this.frames = 0;
    this.colours = new Map();
    this.widths = new Map();
    this.pending = false;
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.contrast = matchMedia("(prefers-contrast: more)");
    for (const query of [this.dark, this.contrast]) query.addEventListener("change", () => this.themed());
    this.plot = element("plot");
    this.canvases = Object.fromEntries(
      ["events", "texts", "overlay", "overview", "ruler"].map((id) => [id, element(id)]),
    );
    this.labels = new Labels(this);
    this.arrange();
    this.themed();
    new ResizeObserver(() => this.resized()).observe(this.plot);
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", () => this.resized());
    this.resized();
  }

  themed() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    const number = (text) => pixel([1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
    this.theme = {
      back: of("--back"), text: of("--text"), soft: of("--soft"), line: of("--line"), faint: of("--faint"),
      accent: of("--accent"), dim: of("--dim"), busy: of("--busy"), raised: of("--raised"),
    };
    this.pixels = Object.fromEntries(Object.entries(this.theme).map(([name, text]) => [name, number(text)]));
    this.colours.clear();
    this.redraw();
  }

  resized() {
    this.ratio = devicePixelRatio * this.plot.clientWidth * this.plot.clientHeight * devicePixelRatio > 8e6 ? 1 : devicePixelRatio;
    for (const canvas of Object.values(this.canvases)) {
      const { clientWidth, clientHeight } = canvas;
      canvas.width = Math.max(1, Math.round(clientWidth * this.ratio));
      canvas.height = Math.max(1, Math.round(clientHeight * this.ratio));
    }
    const { width, height } = this.canvases.events;
    this.image = new ImageData(width, height);
    this.picture = new Uint32Array(this.image.data.buffer);
    this.line = new Line(width);
    this.scrollTo(this.scroll);
    this.redraw();
  }

  get width() {
    return this.plot.clientWidth;
  }

  /** All groups: those of the trace with what was worked out, and those of the page. */
  groupsOf(trace, worked) {
    const { tracks } = this.recordingOf(trace);
    const groups = trace.groups.map((group) => {
      const more = [...worked.values()].flat().filter((of) => of.key === group.key);
      const recording = tracks.get(group.key);
      if (!more.length && !recording) return group;
      return {
        ...group,
        tracks: [...(recording ? [recording] : []), ...group.tracks, ...more.flatMap((of) => of.tracks)],
        counters: [...group.counters, ...more.flatMap((of) => of.counters)],
      };
    });
    return [...this.own.values(), ...groups];
  }

  /** Rows of what was not recorded. */
  recordingOf(trace) {
    const known = this.recordings.get(trace);
    if (known) return known;
    const made = new Recording(trace.recording ?? [], this.ownNames, () => this.ownRow());
    this.recordings.set(trace, made);
    for (const [row, tile] of made.tiles) this.tiles.set(row, tile);
    return made;
  }

  get recording() {
    return this.recordingOf(this.trace);
  }

  /** A number for another row of the page's own. */
  ownRow() {
    return -1 - (this.nextRow = (this.nextRow ?? 0) + 1);
  }

  get groups() {
    return this.groupsOf(this.trace, this.worked);
  }

  /** Puts the rows where they are now. */
  arrange() {
    const { pinned, groups } = arranged(this.groups, this.arrangement);
    const { lines, height, pinnedHeight } = layout(groups, this.closed, pinned);
    this.lines = lines;
    this.height = height;
    this.pinnedHeight = pinnedHeight;
    this.pinnedLines = lines.filter((line) => line.isPinned);
    this.shownGroups = groups;
    const counters = this.groups.flatMap((group) => group.counters);
    this.counters = new Map(counters.flatMap((counter) => [counter.row, counter.stack?.rest ?? counter.row].map((row) => [row, counter])));
    this.lineOf = linesOfRows(groups, lines);
    this.labels.show(lines, pinnedHeight);
    this.scrollTo(this.scroll);
    this.redraw();
  }

  /** Makes a group of the page of events, or takes it away. @param {import("./own.mjs").Own[] | null} events */
  makeOwn(key, label, detail, events) {
    const before = this.own.get(key);
    this.own.delete(key);
    for (const row of before ? [before.busy, ...before.tracks[0].rows] : []) this.tiles.delete(row);
    if (events?.length) {
      const { subtracks, left } = subtracksOf(events);
      const row = (of) => {
        const number = this.ownRow();
        this.tiles.set(number, tileOf(number, of, this.ownNames));
        return number;
      };
      const busy = row(merged(events));
      const track = { key: `${key}.events`, label: "events", rows: subtracks.map(row), busy, events: events.length, not_shown: left };
      this.own.set(key, { key, label, detail, events, is_gpu: false, isOwn: true, host: null, tracks: [track], counters: [], busy });
    }
    this.arrange();
  }

  /** What is known of a row in a time. */
  known(level, row, from, to) {
    const own = this.tiles.get(row);
    return own ? [{ tile: own, from: -Infinity, to: Infinity }] : this.cache.known(level, row, from, to, this.trace.facts.span_ns);
  }

  /** The text of a name. */
  nameOf(name) {
    return (name < 0 ? this.ownNames.text(name) : this.names[name]) ?? "";
  }

  kindOf(name) {
    return name < 0 ? this.ownNames.kind(name) : (this.kinds[name] ?? 4);
  }

  /** Where a line is on the plot. */
  topOf(line) {
    return line.isPinned ? line.top : line.top - this.scroll;
  }

  toggle(key) {
    if (!this.closed.delete(key)) this.closed.add(key);
    this.arrange();
    this.labels.focus(key);
    this.changed?.();
  }

  scrollTo(y) {
    this.scroll = Math.max(0, Math.min(y, this.height - this.plot.clientHeight + 12));
    this.labels.scrollTo(this.scroll);
    this.redraw();
  }

  /** Lines on the screen. */
  onScreen(lines = this.lines, pinnedHeight = this.pinnedHeight) {
    const bottom = this.plot.clientHeight;
    return lines.filter((line) => {
      const top = this.topOf(line);
      return top < bottom && top + line.height > (line.isPinned ? 0 : pinnedHeight);
    });
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  /** Redraws what is above the rows only. */
  redrawOverlay() {
    if (this.pending || this.overlayPending) return;
    this.overlayPending = true;
    requestAnimationFrame(() => {
      this.overlayPending = false;
      if (!this.pending) this.drawOverlay();
    });
  }

  colour(name, event) {
    let found = this.colours.get(name);
    if (!found) {
      const { fill, label } = this.ratios && name >= 0
        ? colourOfRatio(this.ratios.get(name), this.dark.matches)
        : colourOf(this.nameOf(name), this.kindOf(name), this.dark.matches);
      found = { pixel: pixel(fill), fill: `rgb(${fill.join()})`, label: `rgb(${label.join()})` };
      if (name < 0 || this.names[name] !== undefined) this.colours.set(name, found);
    }
    if (this.isHit && name >= 0 && !this.isHit(name, event)) return { ...found, pixel: this.pixels.dim, label: this.theme.soft };
    return found;
  }

  get level() {
    return levelFor(this.view.length / this.canvases.events.width);
  }

  draw() {
    performance.mark("frame");
    const { canvases, view, ratio, line, picture, pixels } = this;
    const { width, height } = canvases.events;
    const visible = this.onScreen();
    picture.fill(pixels.back);
    const labels = [];
    const area = mixed(pixels.back, pixels.busy, 0.35);
    // Those that are pinned lie above the others.
    const pinnedTo = Math.min(height, Math.round(this.pinnedHeight * ratio));
    let isPinnedNext = false;
    for (const of of [...visible.filter((one) => !one.isPinned), ...visible.filter((one) => one.isPinned)]) {
      const { sort, row, height: tall, counter, isPinned } = of;
      if (sort === "node") continue;
      if (isPinned && !isPinnedNext) {
        isPinnedNext = true;
        picture.fill(pixels.back, 0, pinnedTo * width);
      }
      const top = this.topOf(of);
      const from = Math.round(top * ratio);
      const to = Math.min(height, Math.round((top + tall) * ratio));
      const gap = sort === "group" ? Math.round(3 * ratio) : Math.round(ratio);
      const [first, last] = [Math.max(0, from), Math.max(0, to - gap)];
      const known = this.known(this.level, row, view.from, view.to);
      if (counter?.stack) {
        this.drawStack(of, from, Math.round(tall * ratio) - gap);
        continue;
      }
      if (counter) {
        line.gatherValues(known, view);
        const range = [Math.min(0, counter.least), Math.max(0, counter.greatest)];
        this.drawSteps(from, Math.round(tall * ratio) - gap, range, { back: pixels.back, fore: pixels.accent, area });
        continue;
      }
      line.gather(known, view);
      if (sort === "group" || sort === "busy") {
        if (first === from) bars(picture, width, line.share, first, last - first, sort === "group" ? pixels.faint : pixels.back, pixels.busy);
        else bars(picture, width, line.share, first, last - first, pixels.faint, pixels.busy);
      } else {
        copyDown(picture, width, line.events(pixels.back, (name, event) => this.colour(name, event).pixel), first, last - first);
        if (this.contrast.matches) hatch(picture, width, line, (name) => this.kindOf(name), first, last - first, pixels.text);
        if (isPinned || top >= this.pinnedHeight - 1) this.collect(known, top, labels);
      }
      if (sort !== "group") this.drawStops(of, first, last);
    }
    if (pinnedTo) picture.fill(pixels.line, Math.max(0, pinnedTo - Math.max(1, Math.round(ratio))) * width, pinnedTo * width);
    canvases.events.getContext("2d").putImageData(this.image, 0, 0);
    this.drawTexts(labels);
    this.drawRuler();
    this.drawOverview();
    this.drawOverlay();
    performance.measure("frame", "frame");
    performance.clearMarks("frame");
    performance.clearMeasures("frame");
    this.frames += 1;
    this.want(visible);
    this.drawn?.();
    element("window").textContent = `${duration(view.length)} shown`;
  }

  /** Draws stripes where a process was not recorded on what is empty there. */
  drawStops({ group }, first, last) {
    const { width } = this.canvases.events;
    for (const times of this.recording.stopped.get(group.key) ?? []) {
      const [left, right] = times.map((at) => Math.min(width, Math.max(0, Math.round(this.view.x(at, width)))));
      if (right > left) stripe(this.picture, width, [left, right], first, Math.max(0, last - first), this.pixels.back, this.pixels.line);
    }
  }

  /** Puts rows of pixels into the picture; what is above and below it is not seen. */
  put(rows, top, height) {
    const { width } = this.canvases.events;
    const first = Math.max(0, -top);
    const last = Math.min(height, this.canvases.events.height - top);
    if (last > first) this.picture.set(rows.subarray(first * width, last * width), (top + first) * width);
  }

  /** Draws the values that are gathered. */
  drawSteps(top, height, range, colours) {
    const { width } = this.canvases.events;
    const rows = new Uint32Array(width * height);
    steps(rows, width, this.line, [0, height], range, colours);
    this.put(rows, top, height);
  }

  /** The allocations of a counter, laid out. @returns {Stack} */
  stackOf(counter) {
    let found = this.stacks.get(counter);
    if (!found) this.stacks.set(counter, (found = new Stack(counter.stack)));
    return found;
  }

  /** What the height of a stack means, and how much of each pixel is not among its blocks. */
  scaleOf(counter, width) {
    const { rest } = counter.stack;
    if (rest === null) return { greatest: counter.greatest, rest: () => 0 };
    const line = new Line(width);
    line.gatherValues(this.known(this.level, rest, this.view.from, this.view.to), this.view);
    return { greatest: counter.greatest, rest: (x) => line.greatest[x] || 0 };
  }

  drawStack({ counter }, top, height) {
    const { width } = this.canvases.events;
    const { back, faint, text } = this.pixels;
    const stack = this.stackOf(counter);
    const rows = new Uint32Array(width * height);
    const of = this.scaleOf(counter, width);
    const colour = (block) => (this.selected?.event === stack.event[block] ? text : this.colourOfBytes(stack.bytes[block]));
    stack.draw(rows, width, [0, height], this.view, { ...of, colour, back, others: mixed(back, this.pixels.soft, 0.4) });
    // Where the greatest value would be is seen.
    for (let x = 0; x < width; x += 1) if (rows[x] === back) rows[x] = faint;
    this.put(rows, top, height);
  }

  /** The colour of allocations of a size: equal ones have the same. */
  colourOfBytes(bytes) {
    const key = `bytes ${bytes}`;
    let found = this.colours.get(key);
    if (found === undefined) this.colours.set(key, (found = pixel(colourOf(key, 0, this.dark.matches).fill)));
    return found;
  }

  /** The allocation at a place of the plot, if it is one of a stack. */
  blockAt(x, y) {
    const { line } = this.at(x, y);
    if (!line?.counter?.stack) return null;
    const { counter } = line;
    const stack = this.stackOf(counter);
    const { width } = this.canvases.events;
    const inside = y - this.topOf(line);
    const block = stack.at(this.view, width, x * this.ratio, inside, line.height - 1, this.scaleOf(counter, width));
    return block < 0 ? null : { event: stack.event[block], name: stack.name[block], bytes: stack.bytes[block], start_ns: stack.start[block], end_ns: stack.end[block] };
  }

  /** Adds runs of a row that are wide enough for a label; parts of one event that lie beside each other are one. */
  collect(known, top, labels) {
    const { view, width } = this;
    let last = null;
    for (const { tile, from, to } of known) {
      const size = 2 ** tile.level;
      for (let run = 0; run < tile.first.length; run += 1) {
        const begin = Math.max((tile.tile * BUCKETS + tile.first[run]) * size, from);
        const end = Math.min((tile.tile * BUCKETS + tile.first[run] + tile.length[run]) * size, to);
        if (end <= begin || end < view.from || begin > view.to) continue;
        const right = Math.min(view.x(end, width), width);
        if (last && last.event === tile.event[run]) {
          last.right = right;
          continue;
        }
        if (last && last.right - last.left >= LABEL_FROM) labels.push(last);
        last = { event: tile.event[run], name: tile.name[run], left: Math.max(view.x(begin, width), 0), right, top };
      }
    }
    if (last && last.right - last.left >= LABEL_FROM) labels.push(last);
  }

  /** The text of a name, cut to a width; and how wide it is at most. */
  cut(context, name, room) {
    const text = shown(this.nameOf(name));
    let widths = this.widths.get(text);
    if (!widths) {
      if (this.widths.size > 20000) this.widths.clear();
      widths = { whole: context.measureText(text).width, cuts: new Map() };
      this.widths.set(text, widths);
    }
    if (widths.whole <= room) return [text, widths.whole];
    const known = Math.floor(room / 8);
    if (!widths.cuts.has(known)) {
      let [low, high] = [0, text.length];
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (context.measureText(`${text.slice(0, middle)}…`).width <= known * 8) low = middle;
        else high = middle - 1;
      }
      widths.cuts.set(known, low > 1 ? `${text.slice(0, low)}…` : "");
    }
    return [widths.cuts.get(known), known * 8];
  }

  context(id) {
    const canvas = this.canvases[id];
    const context = canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    return context;
  }

  drawTexts(labels) {
    const context = this.context("texts");
    context.font = FONT;
    context.textBaseline = "middle";
    labels.sort((one, other) => other.right - other.left - (one.right - one.left));
    this.texts = [];
    for (const { name, event, left, right, top } of labels.slice(0, MOST_LABELS)) {
      const [text, wide] = this.cut(context, name, Math.min(right - left - 8, LABEL_MOST));
      if (!text) continue;
      context.fillStyle = this.colour(name, event).label;
      context.fillText(text, left + 4, top + 9);
      this.texts.push([left + 2, top + 1, wide + 4, 16]);
    }
  }

  drawRuler() {
    const context = this.context("ruler");
    const { width } = this;
    context.font = FONT;
    context.textBaseline = "middle";
    for (const { x, label } of marks(this.view.from, this.view.to, width)) {
      context.fillStyle = this.theme.line;
      context.fillRect(Math.round(x), 16, 1, 10);
      context.fillStyle = this.theme.soft;
      if (x + 4 + context.measureText(label).width < width) context.fillText(label, x + 4, 11);
    }
    this.marks.forEach(([at, name], place) => {
      const x = Math.round(this.view.x(at, width));
      if (x < 0 || x > width) return;
      const next = this.marks[place + 1] ? this.view.x(this.marks[place + 1][0], width) : width;
      let text = next - x < 16 ? "" : shown(name).slice(0, 60);
      while (text && context.measureText(text).width + 8 > next - x) text = text.slice(0, -1);
      const wide = text ? context.measureText(text).width + 8 : 5;
      context.fillStyle = this.theme.accent;
      context.fillRect(x, 3, wide, 23);
      context.fillStyle = this.theme.back;
      context.fillText(text, x + 4, 15);
    });
    if (this.range) {
      const [from, to] = this.range.map((at) => this.view.x(at, width));
      context.fillStyle = this.theme.accent;
      context.fillRect(from, 22, Math.max(1, to - from), 4);
    }
  }

  /** How busy each GPU, or where there is none each process, is in all of the trace. */
  drawOverview() {
    const canvas = this.canvases.overview;
    const { width, height } = canvas;
    const used = this.trace.groups.filter((group) => group.tracks.length);
    const gpus = used.filter((group) => group.is_gpu);
    const groups = (gpus.length ? gpus : used).slice(0, Math.max(1, Math.floor(height / 3)));
    const image = new ImageData(width, height);
    const picture = new Uint32Array(image.data.buffer);
    picture.fill(this.pixels.raised);
    const span = Math.max(this.trace.facts.span_ns, 1);
    const line = new Line(width);
    const level = levelFor(span / width);
    const tall = Math.floor(height / Math.max(groups.length, 1));
    groups.forEach((group, at) => {
      line.gather(this.cache.known(level, group.busy, 0, span, span), { from: 0, to: span });
      bars(picture, width, line.share, at * tall, Math.max(1, tall - 1), this.pixels.raised, this.pixels.busy);
    });
    const context = canvas.getContext("2d");
    context.putImageData(image, 0, 0);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
    const [left, right] = [this.view.from, this.view.to].map((at) => (Math.min(Math.max(at, 0), span) / span) * wide);
    context.globalAlpha = 0.62;
    context.fillStyle = this.theme.raised;
    context.fillRect(0, 0, left, high);
    context.fillRect(right, 0, wide - right, high);
    context.globalAlpha = 1;
    context.strokeStyle = this.theme.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, Math.max(2, right - left - 1.5), high - 1.5);
    context.fillStyle = this.theme.accent;
    this.ticks?.forEach((hits, part) => {
      if (hits) context.fillRect((part / this.ticks.length) * wide, high - 4, Math.max(1, wide / this.ticks.length), 4);
    });
  }

  /** Where an event is on the screen, if its row or what stands for it is laid out. */
  box({ row, start_ns: start, duration_ns: length }) {
    const line = this.lineOf.get(row);
    if (!line) return null;
    const left = this.view.x(start, this.width);
    const right = this.view.x(start + length, this.width);
    return { left, right: Math.max(right, left + 1), top: this.topOf(line), height: line.height, line };
  }

  drawOverlay() {
    const context = this.context("overlay");
    const { theme, width } = this;
    const tall = this.plot.clientHeight;
    context.fillStyle = theme.accent;
    for (const [at] of this.marks) {
      const x = Math.round(this.view.x(at, width));
      if (x >= 0 && x <= width) context.fillRect(x, 0, 1, tall);
    }
    if (this.range) {
      const [from, to] = this.range.map((at) => this.view.x(at, width));
      const boxes = this.parts ? this.onScreen().filter((line) => this.isChosen(line)).map((line) => [Math.max(this.topOf(line), line.isPinned ? 0 : this.pinnedHeight), this.topOf(line) + line.height]) : [[0, tall]];
      for (const [top, bottom] of boxes) {
        context.fillStyle = theme.accent;
        context.globalAlpha = 0.12;
        context.fillRect(from, top, to - from, bottom - top);
        context.globalAlpha = 1;
        context.fillRect(from, top, 1, bottom - top);
        context.fillRect(to, top, 1, bottom - top);
      }
    }
    this.drawCursors(context, tall);
    const outline = (box, wide) => {
      context.lineWidth = wide + 2;
      context.strokeStyle = theme.back;
      const rect = [box.left - 0.5, box.top - 0.5, Math.max(2, box.right - box.left) + 1, box.height];
      context.strokeRect(...rect);
      context.lineWidth = wide;
      context.strokeStyle = theme.text;
      context.strokeRect(...rect);
    };
    const box = this.selected && this.box(this.selected);
    if (box) {
      context.save();
      context.clip(this.outsideOfLabels(), "evenodd");
      for (const link of this.links.slice(0, MOST_ARROWS)) {
        const other = this.box(link);
        if (other) this.arrow(context, this.selected.is_op ? other : box, this.selected.is_op ? box : other);
      }
      for (const [from, to] of this.dependencies()) this.arrow(context, from, to, true);
      context.restore();
      outline(box, 2);
    }
    const hovered = this.hover && this.box(this.hover);
    if (hovered) outline(hovered, 1);
    if (this.pointer !== undefined && this.pointer >= 0) {
      context.fillStyle = theme.soft;
      context.globalAlpha = 0.5;
      context.fillRect(Math.round(this.pointer), 0, 1, tall);
      context.globalAlpha = 1;
    }
    if (this.area) {
      const { x0, y0, x1, y1 } = this.area;
      context.strokeStyle = theme.accent;
      context.fillStyle = theme.accent;
      context.globalAlpha = 0.15;
      context.fillRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
      context.globalAlpha = 1;
      context.lineWidth = 1;
      context.strokeRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
    }
  }

  /** The two cursors, and between them how far they are apart. */
  drawCursors(context, tall) {
    const { theme, width } = this;
    const places = this.cursors.map((at) => (at === null ? null : this.view.x(at, width)));
    context.font = FONT;
    context.textBaseline = "middle";
    places.forEach((x, number) => {
      if (x === null || x < -1 || x > width + 1) return;
      context.save();
      context.strokeStyle = theme.text;
      context.lineWidth = 1.5;
      context.setLineDash(number ? [3, 3] : [8, 3]);
      context.beginPath();
      context.moveTo(Math.round(x) + 0.5, 0);
      context.lineTo(Math.round(x) + 0.5, tall);
      context.stroke();
      context.restore();
      this.flag(context, String(number + 1), x + 3, tall - 12);
    });
    if (places.every((x) => x !== null)) {
      const [left, right] = [Math.max(0, Math.min(...places)), Math.min(width, Math.max(...places))];
      if (right > left) {
        const text = duration(Math.abs(this.cursors[1] - this.cursors[0]));
        context.fillStyle = theme.text;
        context.fillRect(left, tall - 30, right - left, 1);
        this.flag(context, text, (left + right - context.measureText(text).width) / 2 - 4, tall - 30);
      }
    }
  }

  flag(context, text, x, y) {
    const wide = context.measureText(text).width + 8;
    const left = Math.max(2, Math.min(x, this.width - wide - 2));
    context.fillStyle = this.theme.text;
    context.fillRect(left, y - 8, wide, 16);
    context.fillStyle = this.theme.back;
    context.fillText(text, left + 4, y);
  }

  /** Where arrows are drawn: they go behind the labels. No two labels overlap. */
  outsideOfLabels() {
    const path = new Path2D();
    path.rect(0, 0, this.width, this.plot.clientHeight);
    for (const box of this.texts) path.rect(...box);
    return path;
  }

  /** Arrows from what the selected event waited for, and to what waited for it: from its end, to the time at which that was no more waited for. */
  dependencies() {
    const { selected, waits } = this;
    const pairs = waits ? [...waits.waited_for.map((of) => [of, selected]), ...waits.waited_by.map((of) => [selected, of])] : [];
    const places = pairs.slice(0, MOST_ARROWS).map(([on, waiter]) => {
      const [from, to] = [this.box(on), this.box(waiter)];
      if (!from || !to) return null;
      const end = this.view.x(on.start_ns + on.duration_ns, this.width);
      return [{ ...from, left: end }, { ...to, left: Math.min(Math.max(end, to.left), to.right) }];
    });
    return places.filter(Boolean);
  }

  /** @param {boolean} [isDashed] an arrow of a wait */
  arrow(context, from, to, isDashed = false) {
    if (Math.max(from.left, to.left) < 0 || Math.min(from.left, to.left) > this.width) return;
    // What is not on the screen is pointed at from its edge: the whole curve of an arrow that is far longer would be a line through one row.
    const onEdge = (x) => Math.min(Math.max(x, -8), this.width + 8);
    const [x0, y0] = [onEdge(from.left), from.top + from.height / 2];
    const [x1, y1] = [onEdge(to.left), to.top + to.height / 2];
    const bend = Math.max(24, Math.min(120, Math.abs(x1 - x0) / 2));
    for (const [colour, wide] of [[this.theme.back, 4], [this.theme.text, 1.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.setLineDash(isDashed ? [5, 3] : []);
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
      context.stroke();
    }
    context.setLineDash([]);
    context.fillStyle = this.theme.text;
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 7, y1 - 4);
    context.lineTo(x1 - 7, y1 + 4);
    context.fill();
  }

  /** Asks for the tiles and names that are not there: first those that are seen, then as much again on both sides. */
  async want(visible) {
    const { view } = this;
    const span = this.trace.facts.span_ns;
    const length = view.length;
    const overview = levelFor(Math.max(span, 1) / Math.max(this.canvases.overview.width, 1));
    const heads = this.trace.groups.map((group) => group.busy);
    const rests = visible.map((line) => line.counter?.stack?.rest ?? -1);
    const rows = [...new Set([...visible.map((line) => line.row), ...rests])].filter((row) => row >= 0);
    const wanted = [
      [this.level, view.from, view.to, rows],
      [overview, 0, span, heads],
      [overview, 0, span, rows],
      [this.level, view.from - length, view.to + length, rows],
    ];
    const round = (this.round = (this.round ?? 0) + 1);
    clearTimeout(this.waiting);
    for (const [level, from, to, of] of wanted) {
      const asked = this.missing(level, tilesOf(level, from, to, span), of);
      if (!asked) continue;
      if (this.aborts && this.aborts.key !== asked.key) this.aborts.abort();
      if (this.aborts?.key === asked.key && !this.aborts.signal.aborted) return;
      this.aborts = new AbortController();
      this.aborts.key = asked.key;
      const { signal } = this.aborts;
      try {
        const tiles = await this.server.tiles(asked.level, asked.first, asked.tiles, asked.rows, signal);
        tiles.forEach((tile) => this.cache.add(tile));
        if (this.aborts?.key === asked.key) this.aborts = null;
        await this.name(tiles);
        this.redraw();
      } catch (error) {
        if (this.aborts?.key === asked.key) this.aborts = null;
        if (error.name !== "AbortError") this.failed(error);
      }
      return;
    }
    if (round === this.round) this.isWhole = true;
  }

  /**
   * Shows another reading of the trace, whose rows and events have other numbers. Nothing changes on the screen before what is seen there has come.
   * @param {any} trace
   * @param {(view: View) => void} goTo puts a view where it is to be
   * @param {number} moved how much later all times are, ns
   */
  async renew(trace, goTo, moved) {
    const view = new View(trace.facts.span_ns);
    view.set(this.view.from, this.view.to);
    goTo(view);
    const span = trace.facts.span_ns;
    const level = levelFor(view.length / this.canvases.events.width);
    const overview = levelFor(Math.max(span, 1) / Math.max(this.canvases.overview.width, 1));
    const worked = new Map();
    for (const what of this.worked.keys()) worked.set(what, await this.server.derive(what, trace.version));
    const groups = this.groupsOf(trace, worked);
    const { pinned, groups: left } = arranged(groups, this.arrangement);
    const { lines, pinnedHeight } = layout(left, this.closed, pinned);
    const seen = this.onScreen(lines, pinnedHeight);
    const cache = new Cache();
    const parts = new Set();
    const counters = new Set(groups.flatMap((group) => group.counters).map((counter) => counter.row));
    for (const [of, from, to, rows] of [
      [level, view.from, view.to, [...new Set(seen.map((line) => line.row))].filter((row) => row >= 0)],
      [overview, 0, span, trace.groups.map((group) => group.busy)],
    ]) {
      const [first, end] = tilesOf(of, from, to, span);
      const some = rows.slice(0, Math.floor(MOST_TILES / Math.max(end - first, 1)));
      if (!some.length || end <= first) continue;
      for (const tile of await this.server.tiles(of, first, end - first, some, undefined, trace.version)) {
        cache.add(tile);
        if (!counters.has(tile.row)) for (const name of tile.name) parts.add(Math.floor(name / NAMES));
      }
    }
    // The last names that were asked for may be more now.
    for (const part of this.asked.keys()) if (part >= Math.floor(this.names.length / NAMES)) this.asked.delete(part);
    await this.nameParts(parts, trace.version);
    this.aborts?.abort();
    this.aborts = null;
    this.server.version = trace.version;
    for (const row of this.recording.tiles.keys()) this.tiles.delete(row);
    this.recordings.delete(this.trace);
    this.trace = trace;
    this.worked = worked;
    this.cache = cache;
    this.view.span = view.span;
    this.view.set(view.from, view.to);
    this.marks.forEach((mark) => (mark[0] += moved));
    if (this.range) this.range = this.range.map((at) => at + moved);
    this.cursors = this.cursors.map((at) => (at === null ? null : at + moved));
    // What they are now is found out later: events have other numbers.
    for (const { key, label, detail, events } of [...this.own.values()]) {
      this.makeOwn(key, label, detail, events.map((event) => ({ ...event, start: event.start + moved, event: null })));
    }
    this.hover = null;
    this.arrange();
  }

  /** One question for tiles that are not there. */
  missing(level, [first, end], rows) {
    let [low, high] = [Infinity, -1];
    const lacking = rows.filter((row) => {
      let lacks = false;
      for (let tile = first; tile < end; tile += 1) {
        if (this.cache.has(level, tile, row)) continue;
        lacks = true;
        low = Math.min(low, tile);
        high = Math.max(high, tile);
      }
      return lacks;
    });
    if (!lacking.length) return null;
    this.isWhole = false;
    const tiles = Math.min(high - low + 1, MOST_TILES);
    const some = lacking.slice(0, Math.max(1, Math.floor(MOST_TILES / tiles)));
    return { level, first: low, tiles, rows: some, key: `${level}/${low}/${tiles}/${some.join()}` };
  }

  /** Asks for names of tiles that are not known. */
  async name(tiles) {
    const parts = new Set();
    for (const { name, row } of tiles) if (!this.counters.has(row)) for (const number of name) parts.add(Math.floor(number / NAMES));
    await this.nameParts(parts);
  }

  /** Waits until names are known; those that others have asked for already are not asked for again. */
  async nameParts(parts, version = this.server.version) {
    for (const part of parts) if (!this.asked.has(part)) this.asked.set(part, this.askNames(part, version));
    await Promise.all([...parts].map((part) => this.asked.get(part)));
  }

  async askNames(part, version) {
    try {
      const names = await this.server.names(part * NAMES, version);
      names.forEach(([text, kind], at) => {
        this.names[part * NAMES + at] = text;
        this.kinds[part * NAMES + at] = kind;
      });
    } catch (error) {
      this.asked.delete(part);
      throw error;
    }
  }

  /** What is at a place of the plot: the line, the time, and the run there. */
  at(x, y) {
    const isPinned = y < this.pinnedHeight;
    const line = lineAt(this.lines, isPinned ? y : y + this.scroll);
    const when = this.view.at(x, this.width);
    return { line, when, ...(line ? this.runOf(line.row, when) : {}) };
  }

  /** The run of a row at a time, within two pixels. */
  runOf(row, when) {
    const near = (2 * this.view.length) / Math.max(this.width, 1);
    const known = this.known(this.level, row, when - near, when + near);
    let best = null;
    for (const { tile } of known) {
      for (const tolerance of [0, near]) {
        const place = runAt(tile, when, tolerance);
        if (place < 0) continue;
        const size = 2 ** tile.level;
        const found = {
          row,
          event: tile.event[place],
          name: tile.name[place],
          count: tile.count[place],
          values: this.counters.has(row) ? values(tile).map((column) => column[place]) : null,
          busy: tile.busy[place] / 255,
          start_ns: (tile.tile * BUCKETS + tile.first[place]) * size,
          duration_ns: tile.length[place] * size,
          isExact: tolerance === 0,
        };
        if (!best || (found.isExact && !best.isExact)) best = found;
        break;
      }
    }
    return best ? { run: best } : {};
  }

  /** Text of what is under the pointer. */
  tell({ line, run, when }) {
    if (!line) return null;
    if (line.sort === "counter") {
      const value = run ? [...new Set(run.values.map((value) => valueOf(line.counter, value)))].join(" to ") : "no value";
      return [`${line.counter.label} ${value}`, time(when, this.view.length / 1000)];
    }
    if (line.sort === "node") return null;
    if (line.sort !== "row") {
      const share = run ? ` ${percent(run.busy)} busy here` : " idle here";
      return [(line.track ?? line.group).label + share, time(when, this.view.length / 1000)];
    }
    if (!run) return null;
    const name = this.nameOf(run.name);
    if (run.row < 0) return [name, `${duration(run.duration_ns)} · at ${exact(run.start_ns)}`];
    const many = run.count > 1 ? `longest of ${run.count} here` : "";
    return [name, many];
  }

  /** Shows where an event is: scrolls to its row, moves the times if it is not seen. */
  show(event, isFit = false) {
    const { start_ns: start, duration_ns: length } = event;
    if (isFit) this.view.set(start - Math.max(length, 20) * 0.6, start + length + Math.max(length, 20) * 0.6);
    else if (start + length < this.view.from || start > this.view.to) {
      const middle = start + length / 2;
      this.view.set(middle - this.view.length / 2, middle + this.view.length / 2);
    }
    const line = this.lineOf.get(event.row);
    if (line && !line.isPinned) {
      const { clientHeight } = this.plot;
      if (line.top < this.scroll + this.pinnedHeight || line.top + line.height > this.scroll + clientHeight) {
        this.scrollTo(line.top - clientHeight / 2);
      }
    }
    this.redraw();
  }

  /** Selects a time, of some rows or of all. @param {import("./state.mjs").Part[] | null} parts */
  choose(range, parts = null) {
    this.range = range;
    this.parts = range && parts;
  }

  /** The tracks that a line shows events of: all of a closed one, a row of an open one. @returns {[any, number?][]} */
  shownBy(line) {
    if (line.sort === "row") return [[line.track, line.level]];
    if (line.sort === "busy") return [[line.track]];
    return line.sort === "group" && this.closed.has(line.group.key) ? line.group.tracks.map((track) => [track]) : [];
  }

  /** What is between two heights of the plot: tracks by their keys, with the first and the last row where these are not all. */
  partsBetween(y0, y1) {
    const [from, to] = [Math.min(y0, y1), Math.max(y0, y1)];
    const parts = new Map();
    for (const line of this.onScreen().filter((one) => this.topOf(one) < to && this.topOf(one) + one.height > from)) {
      for (const [{ key, rows }, level] of this.shownBy(line)) {
        if (rows[0] < 0) continue;
        const [, first, last] = parts.get(key) ?? [key, level ?? 0, 0];
        parts.set(key, [key, Math.min(first, level ?? 0), Math.max(last, level ?? rows.length - 1), rows.length]);
      }
    }
    return [...parts.values()].map(([key, first, last, all]) => (last - first + 1 === all ? [key] : [key, first, last]));
  }

  /** Numbers of the selected rows, which change when the trace is read again; null: all. */
  get chosenRows() {
    if (!this.parts) return null;
    const tracks = new Map(this.groups.flatMap((group) => group.tracks).map((track) => [track.key, track.rows]));
    return this.parts.flatMap(([key, first = 0, last = Infinity]) => (tracks.get(key) ?? []).slice(first, last + 1));
  }

  /** Whether events of a line are selected. */
  isChosen(line) {
    return this.shownBy(line).some(([{ key }, level]) => this.parts.some(([of, first, last]) => of === key && (level === undefined || first === undefined || (level >= first && level <= last))));
  }
}
