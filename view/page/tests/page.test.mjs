// What the page's modules compute, without a browser: `node --test`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { View, marks } from "../axis.mjs";
import { base, colourOf, contrast, colourOfRatio } from "../colour.mjs";
import { count, duration, exact, number, shown, time } from "../format.mjs";
import { health } from "../health.mjs";
import { action } from "../keys.mjs";
import { firstClosed, layout, lineAt, linesOfRows } from "../layout.mjs";
import { OwnNames } from "../own.mjs";
import { Line, bars, copyDown, pixel, steps, stripe } from "../paint.mjs";
import { Recording } from "../recording.mjs";
import { ratioText } from "../compare.mjs";
import { Pyramid, Spans, Steps, StoredBands, StoredRuns, tilesOfRows } from "../runs.mjs";
import { Stack } from "../stack.mjs";
import { START, fromFragment, toFragment } from "../state.mjs";
import { Numbers } from "../stored.mjs";
import { regexOf } from "../embedded.mjs";
import { BUCKETS, Cache, decode, levelFor, runAt, tilesOf, values } from "../tiles.mjs";

/** Numbers that are the same in every run. */
function numbers(seed) {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % most;
  };
}

/** The bytes of an answer with these tiles of one row. */
function answer(level, first, row, tiles) {
  const runs = tiles.flat();
  const words = [0x74647072, 1, level, 1, tiles.length, runs.length, first, 0, row, ...tiles.map((tile) => tile.length)];
  const bytes = new ArrayBuffer(4 * words.length + 17 * runs.length);
  const view = new DataView(bytes);
  let at = 0;
  const put = (size, value) => {
    if (size === 4) view.setUint32(at, value, true);
    else if (size === 2) view.setUint16(at, value, true);
    else view.setUint8(at, value);
    at += size;
  };
  words.forEach((word) => put(4, word));
  for (const [key, size] of [["event", 4], ["name", 4], ["count", 4], ["first", 2], ["length", 2], ["busy", 1]]) {
    runs.forEach((run) => put(size, run[key]));
  }
  return bytes;
}

const run = (first, length, event = 0, busy = 255, name = event, count = 1) => ({ event, name, count, first, length, busy });

test("durations and times have the digits that count", () => {
  assert.deepEqual([0, 7, 999, 1000, 1234, 12345, 123456, 1234567, 61e9].map(duration),
    ["0", "7 ns", "999 ns", "1.000 us", "1.234 us", "12.35 us", "123.5 us", "1.235 ms", "61.00 s"]);
  assert.equal(time(250, 50), "250 ns");
  // What begins 2 ns later reads different, however far away the begin of the trace is.
  assert.deepEqual([0, 7, 1000, 1001, 5e6, 100000002000, 100000004000, 9007199254740991, 9007199254740990].map(exact),
    ["0", "7 ns", "1 us", "1.001 us", "5 ms", "100.000002 s", "100.000004 s", "9007199.254740991 s", "9007199.25474099 s"]);
  assert.equal(count(1234567), "1,234,567");
  assert.deepEqual([1700, 45.5, -3, 1234.56789, 0.1 + 0.2, 8e15].map(number), ["1,700", "45.5", "-3", "1,234.568", "0.3", "8000000000000000"]);
});

test("no character of a name does anything but be seen", () => {
  assert.equal(shown("a\u001b[2J\nb\u202ec\u0000"), "a\\x1b[2J\\nb\\u{202e}c\\x00");
  assert.equal(shown("gemm<float, 4>(µ, 核)"), "gemm<float, 4>(µ, 核)");
  assert.equal(shown("<img onerror=x>"), "<img onerror=x>");
});

test("marks lie in the view, apart, at round times", () => {
  for (const [from, to] of [[0, 1e9], [-5, 40], [123456789, 123456999], [0, 5e13]]) {
    const found = marks(from, to, 1200);
    assert.ok(found.length >= 2 && found.length <= 14, `${from} ${to}: ${found.length}`);
    assert.ok(found.every(({ at, x }) => at >= from && at <= to && x >= 0 && x <= 1200));
    assert.equal(new Set(found.map((mark) => mark.label)).size, found.length);
  }
});

test("a view never leaves the trace, and zooming keeps what is under the pointer", () => {
  const next = numbers(1);
  const view = new View(1e9);
  for (let step = 0; step < 2000; step += 1) {
    const at = view.from + (next(1000) / 1000) * view.length;
    const x = view.x(at, 1000);
    const before = view.length;
    if (next(2)) view.zoom(0.5 + next(100) / 66, at);
    else view.pan((next(200) - 100) * 1e6);
    assert.ok(view.length >= 20 - 1e-6 && view.length <= 1.2e9 + 1);
    assert.ok(view.from < 1e9 && view.to > 0);
    if (view.length < before && view.from > 0 && view.to < 1e9) assert.ok(Math.abs(view.x(at, 1000) - x) < 1000);
  }
  const still = new View(1e9);
  still.set(4e8, 6e8);
  still.zoom(0.5, 4.5e8);
  assert.ok(Math.abs(still.x(4.5e8, 1000) - 250) < 1e-6);
});

test("the address says what is looked at, and what is wrong in it is left out", () => {
  const next = numbers(2);
  for (let turn = 0; turn < 300; turn += 1) {
    const state = { ...START,
      t: next(2) ? [next(1000) - 500, 1000 + next(1e9)] : null,
      sel: [null, "op:4294967297", "call:-3", "b.op:7"][next(4)],
      range: [5, 10 + next(10)],
      parts: [null, [], [["p1.0.7"], ["g0.1", 0, 254]], [["a:b,c&=#", 3, 3]]][next(4)],
      q: ["", "a&b=c#d", "re:^(x|y)%", "核 µ"][next(4)],
      closed: [null, [], ["p1.0", "g0,1"], ["&="]][next(4)],
      marks: [[], [[5, "warm-up"], [70, "a,b:c&d=#"]], [[-3, "核"]]][next(3)],
      shift: [null, 0, -1500, 9e15][next(4)],
      tab: ["details", "search", "compare"][next(3)],
    };
    assert.deepEqual(fromFragment(toFragment(state)), state);
  }
  for (const wrong of ["", "#", "#t=1", "#t=2,1", "#t=a,b", "#sel=x:1", "#sel=op:1e9", "#tab=none", "#q=%E0%A4%A", "#x=y&&=", "#t=1,9e99", "#m=", "#m=x:1", "#m=1", "#m=99999999999999999999:a", "#m=9999999999999999:a", "#shift=1.5", "#shift=x", "#sel=c.op:1"]) {
    assert.deepEqual(fromFragment(wrong), { ...START }, wrong);
  }
});

test("an address with an event keeps that all is looked at", () => {
  assert.equal(toFragment({ ...START, sel: "op:7", isAll: true }), "#t=all&sel=op:7");
  assert.deepEqual(fromFragment("#t=all&sel=op:7"), { ...START, sel: "op:7", isAll: true });
  assert.equal(fromFragment("#sel=op:7").isAll, false);
});

test("what is not shown is counted, and the page says how it is seen", () => {
  const facts = { file: "a.rpd", lost: [], launches_without_op: 0, impossible: 1, outliers: 0, far: 200, far_from_ns: "12961000000000000", no_numbers: 0 };
  const said = health({ traces: [{ facts }] }, true);
  assert.equal(said[0], "1 row with impossible times, ids or places is not shown; rpd check lists them.");
  assert.match(said[1], /^200 rows end more than 104 days behind the begin.*are not shown\. Calls, Reports, SQL.* rpd trim a\.rpd --start 12961000000000000 -o part\.rpd$/);
  const [one] = health({ traces: [{ facts: { ...facts, impossible: 0, far: 1, far_from_ns: null } }] }, false);
  assert.match(one, /^1 row ends .* is not shown\.$/);
});

test("names have a colour of their kind, and labels can be read on it", () => {
  assert.equal(base("void gemm<float, 4>(float*) [clone .kd]"), "gemm");
  assert.equal(base("saxpy.kd"), "saxpy");
  assert.equal(base("<x>"), "<x>");
  const next = numbers(3);
  for (let turn = 0; turn < 2000; turn += 1) {
    const { fill, label } = colourOf(`kernel${next(1e6)}`, next(8), next(2) === 1);
    assert.ok(contrast(fill, label) >= 4.5, `${fill} ${label}`);
  }
  assert.deepEqual(colourOf("gemm<float>()", 0, false), colourOf("void gemm<double>(int)", 0, false));
});

test("texts can be read on what they stand on, in each scheme, with more contrast too", () => {
  const css = readFileSync(new URL("../style.css", import.meta.url), "utf8");
  const declared = (text) => Object.fromEntries([...text.matchAll(/--([\w-]+): ([^;]+);/g)].map(([, name, value]) => [name, value]));
  const root = (start) => declared(css.slice(css.indexOf(start)).match(/:root \{([^}]*)\}/)[1]);
  const light = root(":root");
  const dark = { ...light, ...root("@media (prefers-color-scheme: dark)") };
  const more = root("@media (prefers-contrast: more)");
  // Texts with what is behind them: what a rule says of both, what it says of one on each surface, and what canvases draw.
  const surfaces = ["back", "raised", "faint"];
  const pairs = [["soft", "dim"], ...surfaces.map((surface) => ["text", surface])];
  for (const [, rule] of css.matchAll(/\{([^{}]*)\}/g)) {
    const text = rule.match(/(?<![-\w])color: var\(--([\w-]+)\)/)?.[1];
    const back = rule.match(/background: var\(--([\w-]+)\)/)?.[1];
    if (text && back) pairs.push([text, back]);
    else if (text) surfaces.forEach((surface) => pairs.push([text, surface]));
  }
  assert.ok(pairs.length > 30 && pairs.some(([text, back]) => text === "text" && back === "dim"), "rules are found");
  for (const [scheme, has] of Object.entries({ light, dark, "light, more": { ...light, ...more }, "dark, more": { ...dark, ...more } })) {
    const of = (name) => {
      const value = has[name].match(/^var\(--([\w-]+)\)$/)?.[1];
      return value ? of(value) : [1, 3, 5].map((at) => parseInt(has[name].slice(at, at + 2), 16));
    };
    for (const [text, back] of pairs) {
      const least = scheme.includes("more") && ["text", "soft"].includes(text) ? 7 : 4.5;
      const found = contrast(of(text), of(back));
      assert.ok(found >= least, `${scheme}: ${text} on ${back}: ${found.toFixed(2)}`);
    }
  }
});

test("regular expressions of the server's language find the same in a browser", () => {
  for (const [pattern, finds, not] of [
    ["(?i)^HIP[[:alpha:]]+$", "hipMalloc", "hip3"], ["(?P<one>_|\\-)x", "a-x", "ax"], ["\\Agemm\\z", "gemm", "gemm2"], ["[[:punct:]]$", "f>", "f"],
    ["a\\_b\\<", "a_b<", "ab"], ["(?is)a.b", "A\nB", "ab"], ["^\\[x\\]\\.$", "[x].", "x"], ["[^[:digit:]]", "x", "7"],
  ]) {
    assert.ok(regexOf(pattern).test(finds) && !regexOf(pattern).test(not), pattern);
  }
  for (const wrong of ["(", "(?x)a", "[[:^alpha:]]"]) assert.throws(() => regexOf(wrong), SyntaxError, wrong);
});

test("answers are decoded as the server wrote them, and wrong ones are refused", () => {
  const bytes = answer(4, 7, 3, [[run(0, 2, 9), run(5, 1, 10, 128)], [], [run(511, 1, 11, 1, 4, 70000)]]);
  const tiles = decode(bytes);
  assert.deepEqual(tiles.map(({ tile, row, level, event }) => [tile, row, level, event.length]), [[7, 3, 4, 2], [8, 3, 4, 0], [9, 3, 4, 1]]);
  assert.deepEqual([...tiles[0].event, ...tiles[0].first, ...tiles[0].length, ...tiles[0].busy], [9, 10, 0, 5, 2, 1, 255, 128]);
  assert.deepEqual([tiles[2].name[0], tiles[2].count[0], tiles[2].first[0]], [4, 70000, 511]);
  assert.throws(() => decode(new ArrayBuffer(8)), /too short/);
  assert.throws(() => decode(bytes.slice(0, -1)), /cut off/);
  assert.throws(() => decode(new ArrayBuffer(64)), /version/);
});

test("levels are even and their buckets at most half of a pixel", () => {
  for (const perPixel of [0.01, 1, 2, 3, 8, 100, 12345.6, 1e9, 1e15]) {
    const level = levelFor(perPixel);
    assert.equal(level % 2, 0);
    assert.ok(level === 0 || (2 ** level <= perPixel / 2 && 2 ** (level + 2) > perPixel / 2), `${perPixel}: ${level}`);
  }
  assert.deepEqual(tilesOf(0, -100, 5000, 2000), [0, 4]);
  assert.deepEqual(tilesOf(0, 9000, 9999, 2000), [4, 4]);
});

test("tiles that are missing are shown by coarser ones, and the oldest go first", () => {
  const cache = new Cache(2000);
  const tile = (level, number, row = 0) => decode(answer(level, number, row, [[run(0, BUCKETS)]]))[0];
  cache.add(tile(2, 0));
  cache.add(tile(0, 1));
  const known = cache.known(0, 0, 0, 2047, 2047);
  assert.deepEqual(known.map(({ tile: { level }, from, to }) => [level, from, to]), [[2, 0, 512], [0, 512, 1024], [2, 1024, 2048]]);
  for (let number = 0; number < 50; number += 1) cache.add(tile(0, number, 1));
  assert.ok(cache.bytes <= 2000 && cache.has(0, 49, 1) && !cache.has(0, 0, 1));
});

test("a run is found under a time, or near it", () => {
  const [tile] = decode(answer(2, 1, 0, [[run(10, 5, 1), run(15, 1, 2), run(100, 3, 3)]]));
  const at = (bucket) => (BUCKETS + bucket) * 4;
  assert.deepEqual([9, 10, 14, 15, 16, 99, 100, 102, 103].map((bucket) => runAt(tile, at(bucket))), [-1, 0, 0, 1, -1, -1, 2, 2, -1]);
  assert.equal(runAt(tile, at(16), 8), 1);
  assert.equal(runAt(tile, at(98), 8), 2);
});

test("pixels are what the runs say", () => {
  const next = numbers(4);
  for (let turn = 0; turn < 60; turn += 1) {
    const runs = [];
    let place = 0;
    while (place < BUCKETS) {
      place += next(9);
      const length = Math.min(1 + next(12), BUCKETS - place);
      if (length > 0) runs.push(run(place, length, runs.length, 255));
      place += length;
    }
    const [tile] = decode(answer(0, 0, 0, [runs]));
    const width = 64 + next(400);
    const view = { from: next(100), to: 300 + next(212) };
    const line = new Line(width);
    line.gather([{ tile, from: 0, to: 512 }], view);
    const scale = (view.to - view.from) / width;
    for (let x = 0; x < width; x += 1) {
      const [from, to] = [view.from + x * scale, view.from + (x + 1) * scale];
      const covered = runs.map(({ first, length }) => Math.max(0, Math.min(to, first + length) - Math.max(from, first)) / scale);
      const sum = covered.reduce((all, one) => all + one, 0);
      assert.ok(Math.abs(line.share[x] - sum) < 1e-3, `${x}: ${line.share[x]} ${sum}`);
      if (sum > 1e-6) {
        const most = Math.max(...covered);
        assert.ok(covered[runs.findIndex((one) => one.name === line.of[x])] > most - 1e-3);
      } else assert.equal(line.best[x], 0);
    }
    const back = pixel([255, 255, 255]);
    const pixels = line.events(back, () => pixel([0, 0, 0]));
    assert.ok([...pixels].every((one, x) => (one === back) === (line.best[x] === 0)));
  }
});

test("rows are copied down and bars are as high as their share", () => {
  const picture = new Uint32Array(4 * 6);
  copyDown(picture, 4, new Uint32Array([1, 2, 3, 4]), 1, 2);
  assert.deepEqual([...picture.slice(0, 16)], [0, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 0, 0, 0, 0]);
  const [back, fore] = [pixel([0, 0, 0]), pixel([255, 255, 255])];
  const drawn = new Uint32Array(3 * 4);
  bars(drawn, 3, new Float32Array([0, 0.5, 1]), 0, 4, back, fore);
  const heights = [0, 1, 2].map((x) => [0, 1, 2, 3].filter((y) => drawn[y * 3 + x] === fore).length);
  assert.deepEqual(heights, [0, 2, 4]);
});

const GROUPS = [
  { key: "p1.0", is_gpu: false, busy: 5, counters: [], tracks: [{ key: "p1.0.1", rows: [0, 1], busy: 6 }, { key: "p1.0.2", rows: [2], busy: 2 }] },
  { key: "g0", is_gpu: true, busy: 3, tracks: [{ key: "g0.0", rows: [3], busy: 3 }], counters: [{ key: "g0.c0", row: 7 }] },
];

test("every row has a line, also while it is closed", () => {
  for (const closed of [[], ["p1.0"], ["p1.0.1"], ["p1.0", "g0"]]) {
    const { lines, height } = layout(GROUPS, new Set(closed));
    const of = linesOfRows(GROUPS, lines);
    assert.deepEqual([...of.keys()].sort(), [0, 1, 2, 3]);
    lines.forEach((line, at) => {
      assert.ok(at === 0 || line.top >= lines[at - 1].top + lines[at - 1].height);
      assert.equal(lineAt(lines, line.top + line.height / 2), line);
      assert.ok(line.top + line.height <= height);
    });
  }
  assert.equal(lineAt(layout(GROUPS, new Set()).lines, -1), null);
  assert.deepEqual(firstClosed(GROUPS), []);
  assert.deepEqual(firstClosed(GROUPS, 3), ["p1.0"]);
});

test("a counter is drawn from its least to its greatest value, and no step is torn", () => {
  const bits = (value) => new Uint32Array(new Float32Array([value]).buffer)[0];
  const band = (first, length, least, greatest) => run(first, length, bits(least), 255, bits(greatest));
  const tile = decode(answer(0, 0, 7, [[band(0, 2, 1, 1), band(2, 1, 1, 4), band(3, 2, 4, 4), band(6, 1, 2, 2)]]))[0];
  assert.deepEqual(values(tile).map((column) => [...column]), [[1, 1, 4, 2], [1, 4, 4, 2]]);
  const line = new Line(8);
  line.gatherValues([{ tile, from: 0, to: 8 }], { from: 0, to: 8 });
  assert.deepEqual([...line.least], [1, 1, 1, 4, 4, NaN, 2, NaN]);
  assert.deepEqual([...line.greatest], [1, 1, 4, 4, 4, NaN, 2, NaN]);
  const [back, fore, area] = [1, 2, 3];
  const picture = new Uint32Array(8 * 5);
  steps(picture, 8, line, [0, 5], [0, 4], { back, fore, area });
  const column = (x) => [0, 1, 2, 3, 4].map((y) => picture[y * 8 + x]);
  assert.deepEqual(column(0), [back, back, back, fore, area]);
  assert.deepEqual(column(2), [fore, fore, fore, fore, area]);
  assert.deepEqual(column(4), [fore, area, area, area, area]);
  assert.deepEqual(column(5), [back, back, back, back, back]);
  // Values whose change is between two pixels are joined.
  line.gatherValues([{ tile: decode(answer(0, 0, 7, [[band(0, 1, 4, 4), band(1, 1, 0, 0)]]))[0], from: 0, to: 8 }], { from: 0, to: 8 });
  steps(picture, 8, line, [0, 5], [0, 4], { back, fore, area });
  assert.deepEqual(column(1), [fore, fore, fore, fore, fore]);
});

test("keys do what the list says, wherever letters lie", () => {
  const key = (key, code = "", more = {}) => action({ key, code, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...more });
  assert.equal(key("z", "KeyW"), "in");
  assert.equal(key("[", "BracketLeft"), "cause");
  assert.equal(key("N", "KeyN", { shiftKey: true }), "previousHit");
  assert.equal(key("w", "KeyW", { ctrlKey: true }), null);
  assert.equal(key("Tab", "Tab"), null);
});

test("how much slower something is", () => {
  assert.deepEqual([1, 1.5, 12.34, 250, NaN].map(ratioText), ["×1.00", "×1.50", "×12.3", "×250", ""]);
  for (const isDark of [false, true]) {
    for (const ratio of [undefined, 1e-12, 0.3, 0.8, 1, 1.4, 2, 1e9]) {
      const { fill, label } = colourOfRatio(ratio, isDark);
      assert.ok(fill.every((part) => part >= 0 && part <= 255));
      assert.ok(contrast(fill, label) >= 4.5, `${ratio}`);
    }
    const [fast, same, slow] = [0.5, 1, 2].map((ratio) => colourOfRatio(ratio, isDark).fill);
    assert.ok(fast[2] > fast[0] && slow[0] > slow[2] && Math.max(...same) - Math.min(...same) < 30);
  }
});

test("numbers of a column are those that were written", () => {
  const bytes = [0, 127, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2];
  const numbers = new Numbers(Uint8Array.from(bytes));
  assert.deepEqual([numbers.next(), numbers.next(), numbers.next(), numbers.next()], [0, 127, 128, 2 ** 53 - 1]);
  assert.deepEqual([numbers.signed(), numbers.signed()], [-1, 1]);
  assert.throws(() => numbers.next(), /cut off/);
  const least = new Numbers(Uint8Array.from([...new Array(9).fill(0xff), 0x01]));
  assert.equal(least.long(), -(2n ** 63n));
});

test("rows of a page without a server are what a count of each bucket gives", () => {
  const next = numbers(9);
  for (const many of [40, 3000]) {
    const [start, end] = [[], []];
    let at = 5;
    for (let event = 0; event < many; event += 1) {
      start.push((at += next(3) ? next(30) : 500 + next(4000)));
      end.push((at += next(8) ? next(20) : 3000));
    }
    const duration = end.map((to, place) => to - start[place]);
    const pyramid = new Pyramid(new Spans(Float64Array.from(start), Float64Array.from(end), Uint32Array.from(start.keys()), Float64Array.from(duration)));
    for (let level = 0; level < 22; level += 2) {
      const size = 2 ** level;
      const from = Math.floor((at / size) * 0.4);
      const runs = pyramid.runs(level, from, from + 64);
      for (let bucket = from; bucket < from + 64; bucket += 1) {
        const [low, high] = [bucket * size, (bucket + 1) * size];
        const inside = start.flatMap((begin, event) => (begin < high && (end[event] > low || begin >= low) ? [event] : []));
        const run = runs.find((one) => one.first <= bucket && bucket < one.first + one.length);
        assert.equal(run === undefined, inside.length === 0, `${level} ${bucket}`);
        if (run) assert.equal(run.event, inside.reduce((best, event) => (duration[event] > duration[best] ? event : best)));
      }
      const begun = start.filter((begin) => begin >= from * size && begin < (from + 64) * size).length;
      assert.equal(runs.reduce((sum, run) => sum + run.count, 0), begun);
    }
  }
});

test("a page that has one level shows the coarser ones as events would, and finer ones with its buckets", () => {
  const next = numbers(11);
  const [start, end, value] = [[], [], []];
  let at = 5;
  for (let event = 0; event < 3000; event += 1) {
    start.push((at += next(3) ? next(30) : 500 + next(4000)));
    end.push((at += next(8) ? next(20) : 3000));
    value.push(next(50));
  }
  const duration = end.map((to, place) => to - start[place]);
  const pyramid = new Pyramid(new Spans(Float64Array.from(start), Float64Array.from(end), Uint32Array.from(start.keys()), Float64Array.from(duration)));
  const steps = new Steps(Float64Array.from(start), Float64Array.from(value), at + 50, new Map());
  const tile = (shown, level, number) => tilesOfRows(() => shown, (event) => event % 7, { level, first: number, tiles: 1, rows: [3] })[0];
  for (const [shown, Stored] of [[pyramid, StoredRuns], [steps, StoredBands]]) {
    const { level: finest } = shown.levels[0];
    const stored = new Stored(shown.levels[0]);
    assert.ok(finest > 4);
    for (let level = finest; level < 30; level += 2) {
      const middle = Math.floor(at / 2 / (BUCKETS * 2 ** level));
      assert.deepEqual(tile(stored, level, middle), tile(shown, level, middle));
    }
    const [coarse, fine] = [tile(stored, finest, 1), tile(stored, finest - 4, 16)];
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
      const places = [runAt(coarse, (BUCKETS + Math.floor(bucket / 16)) * 2 ** finest), runAt(fine, (16 * BUCKETS + bucket) * 2 ** (finest - 4))];
      assert.equal(places[0] < 0, places[1] < 0);
      if (places[0] >= 0) assert.equal(coarse.event[places[0]], fine.event[places[1]]);
    }
  }
});

test("what was not recorded has a row of its own, and stripes where nothing is", () => {
  const names = new OwnNames();
  let row = 0;
  const span = (what, start_ns, duration_ns, text) => ({ group: "p1.0", what, start_ns, duration_ns, text, session: 0, lost: [], is_vague: false });
  const spans = [span("stopped", 10, 90, "not recorded"), span("lost", 50, 0, "3 records lost"), span("stopped", 200, 50, "not recorded")];
  const recording = new Recording(spans, names, () => (row -= 1));
  const track = recording.tracks.get("p1.0");
  assert.deepEqual([track.key, track.rows.length, track.events, track.not_shown], ["p1.0.recording", 2, 3, 0]);
  assert.deepEqual(recording.stopped.get("p1.0"), [[10, 100], [200, 250]]);
  const [first, second] = track.rows.map((number) => recording.tiles.get(number));
  assert.deepEqual([...first.first, ...second.first, ...second.length], [10, 200, 50, 1]);
  assert.deepEqual([...first.name, ...second.name].map((name) => [names.text(name), names.kind(name)]), [["not recorded", 8], ["not recorded", 8], ["3 records lost", 9]]);
  assert.equal(recording.span({ row: track.rows[1], event: second.event[0] }), spans[1]);
  assert.equal(recording.span({ row: 7, event: -1 }), undefined);

  const picture = new Uint32Array(20 * 9).fill(1);
  picture[20 * 2 + 5] = 3;
  stripe(picture, 20, [4, 19], 1, 7, 1, 2);
  const inked = [...picture.keys()].filter((at) => picture[at] === 2).map((at) => [at % 20, Math.floor(at / 20)]);
  assert.ok(inked.length > 10 && inked.every(([x, y]) => x >= 4 && x < 19 && y >= 1 && y < 8 && (x + y) % 7 === 0));
  assert.equal(picture[20 * 2 + 5], 3, "what is there is left alone");
});

test("allocations lie above each other, and each pixel has those of the time when most is allocated", () => {
  const columns = { start: [0, 10, 20, 60], end: [100, 30, 80, 100], bytes: [10, 30, 20, 40], event: [5, 6, 7, 8], name: [0, 0, 0, 0], rest: null, others: 0 };
  const stack = new Stack(columns);
  const naive = (time) => columns.start.flatMap((at, block) => (at <= time && columns.end[block] > time ? [block] : []));
  const seen = [];
  stack.each({ from: 0, to: 100 }, 10, (x, live) => seen.push([...live]));
  for (const [x, live] of seen.entries()) {
    let most = [];
    for (let time = x * 10; time < x * 10 + 10; time += 1) if (stack.sum(naive(time)) > stack.sum(most)) most = naive(time);
    assert.deepEqual(live, most, `pixel ${x}`);
  }
  // From elsewhere and finer it is the same.
  stack.each({ from: 15, to: 65 }, 50, (x, live) => assert.deepEqual(live, naive(15 + x), `at ${15 + x}`));
  const picture = new Uint32Array(10 * 70).fill(99);
  const of = { greatest: 70, rest: () => 0 };
  stack.draw(picture, 10, [0, 70], { from: 0, to: 100 }, { ...of, colour: (block) => block + 1, back: 0, others: 50 });
  const column = (x) => Array.from({ length: 70 }, (_, y) => picture[(69 - y) * 10 + x]);
  assert.deepEqual([column(0)[0], column(0)[11], column(2)[20], column(2)[45], column(2)[62], column(9)[20]], [1, 0, 2, 3, 0, 4]);
  for (const [x, y, block] of [[0, 65, 0], [0, 40, -1], [2, 40, 1], [2, 25, 2], [2, 5, -1], [9, 50, 3]]) assert.equal(stack.at({ from: 0, to: 100 }, 10, x, y, 70, of), block, `${x} ${y}`);
  // What is not among them lies below.
  stack.draw(picture, 10, [0, 70], { from: 0, to: 100 }, { ...of, rest: () => 10, colour: (block) => block + 1, back: 0, others: 50 });
  assert.deepEqual([column(0)[5], column(0)[15]], [50, 1]);
});

test("generated allocations are those of slow, obvious code", () => {
  const most = numbers(11);
  const start = Array.from({ length: 200 }, () => most(1000)).sort((a, b) => a - b);
  const columns = { start, end: start.map((at) => at + 1 + most(300)), bytes: start.map(() => 1 + most(50)), event: [], name: [], rest: null, others: 0 };
  const stack = new Stack(columns);
  const live = (time) => start.flatMap((at, block) => (at <= time && columns.end[block] > time ? [block] : []));
  stack.each({ from: 100, to: 900 }, 800, (x, found) => assert.deepEqual(found, live(100 + x)));
  stack.each({ from: 0, to: 1400 }, 20, (x, found) => {
    const sums = Array.from({ length: 70 }, (_, at) => stack.sum(live(70 * x + at)));
    assert.equal(stack.sum(found), Math.max(...sums));
  });
});
