// What people arrange, tables, trees and code, without a browser: `node --test`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { arranged, asFound, moved, toggled } from "../arrangement.mjs";
import { EDGES, heatOf, placesOf } from "../code.mjs";
import { cell, csv } from "../csv.mjs";
import { timeOf } from "../dialogs.mjs";
import { placed } from "../flame.mjs";
import { KEYS, action } from "../keys.mjs";
import { layout, lineAt, linesOfRows } from "../layout.mjs";
import { OwnNames, subtracksOf, merged, tileOf } from "../own.mjs";
import { hatch } from "../paint.mjs";
import { readable } from "../reports.mjs";
import { axesOf, axisOf, placedOf, roofOf } from "../roofline.mjs";
import { START, fromFragment, toFragment } from "../state.mjs";
import { runAt } from "../tiles.mjs";

const track = (key, rows, label = key) => ({ key, label, rows, busy: rows[0] });
const GROUPS = [
  { key: "p1", label: "app 1", detail: "", host: "a", tracks: [track("p1.1", [0, 1], "main thread"), track("p1.2", [2], "loader")], counters: [], busy: 9 },
  { key: "p2", label: "app 2", detail: "", host: "b", tracks: [track("p2.1", [3], "main thread")], counters: [], busy: 3 },
  { key: "g0", label: "GPU 0", detail: "MI300X", host: "a", tracks: [track("g0.0", [4], "queue 0"), track("g0.1", [5], "queue 1")], counters: [{ key: "g0.c", label: "power", row: 6 }], busy: 10 },
];
const keys = ({ groups }) => groups.map((group) => [group.key, ...group.tracks.map((one) => one.key), ...group.counters.map((one) => one.key)].join(" "));

test("rows are as they were found until people arrange them; what is of one host stands together", () => {
  assert.deepEqual(keys(arranged(GROUPS, asFound())), ["p1 p1.1 p1.2", "g0 g0.0 g0.1 g0.c", "p2 p2.1"]);
  const one = GROUPS.map((group) => ({ ...group, host: null }));
  assert.deepEqual(keys(arranged(one, asFound())), ["p1 p1.1 p1.2", "p2 p2.1", "g0 g0.0 g0.1 g0.c"]);
});

test("what is pinned stands above and not twice, what is hidden nowhere", () => {
  const found = arranged(GROUPS, { ...asFound(), pins: ["g0.c", "g0.1", "gone"], hidden: ["p2", "p1.2"] });
  assert.deepEqual(keys(found), ["p1 p1.1", "g0 g0.0"]);
  assert.deepEqual(found.pinned.map(({ group, track: of, counter }) => [group.key, (of ?? counter).key]), [["g0", "g0.c"], ["g0", "g0.1"]]);
  assert.deepEqual(arranged(GROUPS, { ...asFound(), pins: ["g0.1"], hidden: ["g0.1"] }).pinned, []);
});

test("a filter leaves groups whose name has all words, otherwise their rows that have them", () => {
  const left = (words) => keys(arranged(GROUPS, { ...asFound(), words }));
  assert.deepEqual(left("main"), ["p1 p1.1", "p2 p2.1"]);
  assert.deepEqual(left("APP 2"), ["p2 p2.1"]);
  assert.deepEqual(left("mi300"), ["g0 g0.0 g0.1 g0.c"]);
  assert.deepEqual(left("gpu power"), ["g0 g0.c"]);
  assert.deepEqual(left("nothing"), []);
});

test("rows move among their neighbours and no further", () => {
  const all = GROUPS.map((group) => group.key);
  const order = moved([], all, "g0", -1);
  assert.deepEqual(order, ["p1", "g0", "p2"]);
  assert.equal(moved(order, order, "p1", -1), null);
  assert.equal(moved(order, order, "p2", 1), null);
  const tracks = moved(order, ["g0.0", "g0.1"], "g0.1", -1);
  const one = GROUPS.map((group) => ({ ...group, host: null }));
  assert.deepEqual(keys(arranged(one, { ...asFound(), order: tracks })), ["p1 p1.1 p1.2", "g0 g0.1 g0.0 g0.c", "p2 p2.1"]);
  assert.deepEqual(toggled(toggled(["a"], "b"), "a"), ["b"]);
});

test("pinned lines come first, hosts have a line of their own and close with all that is theirs", () => {
  const { pinned, groups } = arranged(GROUPS, { ...asFound(), pins: ["g0.0"] });
  const { lines, height, pinnedHeight } = layout(groups, new Set(["n:a"]), pinned);
  assert.deepEqual(lines.map((line) => [line.sort, line.group.key, Boolean(line.isPinned)]), [
    ["row", "g0", true], ["node", "p1", false], ["node", "p2", false], ["group", "p2", false], ["row", "p2", false],
  ]);
  assert.ok(pinnedHeight >= lines[0].top + lines[0].height && pinnedHeight <= lines[1].top && height > pinnedHeight);
  lines.forEach((line) => assert.equal(lineAt(lines, line.top + 1), line));
  assert.equal(linesOfRows(groups, lines).get(4), lines[0]);
});

test("events of the page's own lie in subtracks, none covers another, and each is found where it is", () => {
  let state = 7;
  const below = (most) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % most;
  const events = Array.from({ length: 300 }, (_, at) => ({ start: below(5000), length: below(40), name: `n${at % 7}`, event: at % 3 ? at : null }));
  const { subtracks, left } = subtracksOf(events);
  assert.equal(subtracks.flat().length + left, events.length);
  const names = new OwnNames();
  for (const subtrack of subtracks) {
    subtrack.slice(1).forEach((event, at) => assert.ok(event.start >= subtrack[at].start + subtrack[at].length));
    const tile = tileOf(-1, subtrack, names);
    subtrack.forEach((event, at) => {
      assert.equal(names.text(tile.name[at]), event.name);
      assert.equal(tile.event[at] >= 0 ? tile.event[at] : null, event.event);
      if (event.length) assert.equal(runAt(tile, event.start), at);
    });
  }
  const busy = new Set(events.flatMap(({ start, length }) => Array.from({ length }, (_, at) => start + at)));
  assert.equal(merged(events).reduce((sum, { length }) => sum + length, 0), busy.size);
  const many = subtracksOf(Array.from({ length: 100 }, () => ({ start: 0, length: 10, name: "x", event: null })));
  assert.equal(many.subtracks.length + many.left, 100);
});

test("cells of a file are no formulas, and come back as they were", () => {
  assert.deepEqual(["=1+1", "+1", "-3.5e7", "@x", "a,b", 'say "x"', "l\nm", null, 7].map(cell),
    ["'=1+1", "'+1", "-3.5e7", "'@x", '"a,b"', '"say ""x"""', '"l\nm"', "", "7"]);
  assert.equal(csv(["a", "b"], [[1, "x"], [null, "-y"]]), "a,b\r\n1,x\r\n,'-y\r\n");
});

test("times that people write", () => {
  for (const [text, ns] of [["1.5ms", 1.5e6], [" 20 us ", 2e4], ["1500", 1500], ["+2s", 2e9], ["25%", 250], ["1,000ns", 1000], ["x", null], ["", null], ["5 parsecs", null], ["-20us", -2e4], ["--1", null], ["1 h", 3600e9], ["1.2.3", null]]) {
    assert.equal(timeOf(text, 1000), ns, text);
  }
});

test("frames lie inside of those around them, and one can be as wide as all", () => {
  const node = (parent, depth, total_ns) => ({ name: 0, parent, depth, total_ns, own_ns: 0 });
  const nodes = [node(null, 0, 60), node(0, 1, 40), node(1, 2, 10), node(0, 1, 15), node(null, 0, 40), node(4, 1, 40)];
  const all = new Map(placed(nodes, 100).map((one) => [one.at, [one.from, one.width]]));
  const near = (found, expected) => assert.deepEqual(found.map((value) => Math.round(value * 1e6) / 1e6), expected);
  near(all.get(0), [0, 0.6]);
  near(all.get(1), [0, 0.4]);
  near(all.get(3), [0.4, 0.15]);
  near(all.get(5), [0.6, 0.4]);
  const focused = new Map(placed(nodes, 100, 1).map((one) => [one.at, [one.from, one.width]]));
  near(focused.get(0), [0, 1]);
  near(focused.get(1), [0, 1]);
  near(focused.get(2), [0, 0.25]);
  assert.ok(!focused.has(3) && !focused.has(4));
});

test("blocks lie below all that lead to them, but for the ends of loops", () => {
  const edges = (...to) => ({ edges: to.map((block) => ({ kind: "branch", block })) });
  const places = placesOf([edges(1, 2), edges(3), edges(3), edges(1, 4), { edges: [{ kind: "end" }] }]);
  assert.deepEqual(places.map(({ row }) => row), [0, 1, 1, 2, 3]);
  assert.deepEqual(places.map(({ column }) => column), [0, 0, 1, 0, 0]);
  const listing = { blocks: [{ address: 16, first: 0, instructions: 4 }, { address: 32, first: 4, instructions: 1 }], instructions: [16, 20, 24, 28, 32].map((address) => ({ address })) };
  // The first block is counted in two parts; what is in another function is not of this listing.
  const parts = [[16, 100], [24, 200], [32, 100], [64, 900]].map(([offset, executed]) => ({ offset, executed, waves: 10, ticks: null }));
  const heat = heatOf({ rows: parts }, listing);
  assert.deepEqual([heat.size, heat.get(16).share, heat.get(32).share > 0.33], [2, 1, true]);
  assert.equal(heat.get(16).text, "10 waves, 300 instructions executed");
  // Where times are there, they are the heat.
  const timed = heatOf({ rows: [{ offset: 16, executed: 300, waves: 10, ticks: 2 }, { offset: 32, executed: 100, waves: 5, ticks: 9 }] }, listing);
  assert.deepEqual([timed.get(16).share < 0.25, timed.get(32).share, timed.get(32).text], [true, 1, "5 waves, 100 instructions executed, 9 ticks"]);
  assert.equal(heatOf(null, listing).size, 0);
  // Kinds of edges differ by more than their colour.
  assert.equal(new Set(Object.values(EDGES).map(([, dashes]) => dashes)).size, Object.keys(EDGES).length);
});

test("kinds of events differ by more than their colour for those who want contrast", () => {
  const drawn = (kind) => {
    const picture = new Uint32Array(12 * 17);
    hatch(picture, 12, { best: new Float64Array(12).fill(1), of: new Uint32Array(12) }, () => kind, 0, 17, 1);
    return picture.join("");
  };
  const kinds = [0, 1, 2, 3, 4, 6, 7];
  assert.equal(new Set(kinds.map(drawn)).size, kinds.length);
  const idle = new Uint32Array(4);
  hatch(idle, 2, { best: new Float64Array(2), of: new Uint32Array(2) }, () => 1, 0, 2, 1);
  assert.equal(idle.join(""), "0000");
});

test("values of reports have their unit", () => {
  assert.deepEqual([["idle_ns", 1500], ["size_bytes", 2048], ["cpu_percent", 12.34], ["calls", 12345], ["name", "x"], ["gpu", null]].map(([key, value]) => readable(key, value)),
    ["1.500 us", "2.0 KiB", "12.3 %", "12,345", "x", ""]);
});

test("the address has how rows are arranged, and cursors", () => {
  const state = { ...START, pins: ["g0.1", "p1.c0.a,b"], hidden: ["p2"], order: ["g0", "p1"], rows: "main & so", derived: ["streams", "memory"], cursors: [5, null], ask: "select 'a&b' from t", tab: "flame" };
  assert.deepEqual(fromFragment(toFragment(state)), state);
  const wrong = fromFragment("#lanes=x,markers&c=1,2,3&pin=&tab=keys");
  assert.deepEqual(wrong, { ...START, pins: [], derived: ["markers"] });
});

test("keys do what their list says", () => {
  const key = (text, code = "", more = {}) => action({ key: text, code, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...more });
  assert.deepEqual([key("z", "KeyZ"), key("Z", "KeyZ", { shiftKey: true }), key("c", "KeyC"), key("C", "KeyC", { shiftKey: true }), key("3", "Digit3"), key("g", "KeyG"), key("p", "KeyP"), key("h", "KeyH")],
    ["back", "forward", "cursor", "secondCursor", "bookmark", "time", "pin", "hide"]);
  assert.equal(key("c", "KeyC", { ctrlKey: true }), null);
  assert.ok(KEYS.every(([keys, what]) => keys && what));
});

test("kernels lie below the roof as far as they are slower, and the roof stays in the chart", () => {
  const kernel = (ratio, rate) => ({ flops_per_byte: ratio, roofline: rate === null ? null : { gflops_per_s: rate } });
  const placed = placedOf([kernel(1, 50), kernel(100, 1000), kernel(0, 0), kernel(null, 5), kernel(2, null)]);
  assert.deepEqual(placed, [kernel(1, 50), kernel(100, 1000)]);
  const peaks = { gflops: 1000, gbytes: 100 };
  const axes = axesOf(placed, peaks);
  assert.deepEqual([axes.across.low, axes.across.high, axes.up.low, axes.up.high], [0, 2, 1, 3]);
  assert.deepEqual(roofOf(peaks, axes), [[1, 100], [10, 1000], [10, 1000], [100, 1000]]);
  // Half of the roof is as far below it everywhere.
  assert.ok(Math.abs(axes.up.share(100) - axes.up.share(50) - (axes.up.share(1000) - axes.up.share(500))) < 1e-12);
  assert.equal(axes.across.share(10), 0.5);
  // One peak alone is one line; none is none.
  assert.deepEqual(roofOf({ gflops: 1000 }, axes), [[1, 1000], [100, 1000]]);
  assert.deepEqual(roofOf({ gbytes: 100 }, axes), [[1, 100], [10, 1000]]);
  assert.deepEqual(roofOf({}, axes), []);
  // A roof that is above all of the chart, or to one side of it.
  for (const far of [{ gbytes: 1e9 }, { gflops: 1000, gbytes: 1e9 }, { gflops: 1000, gbytes: 1e-9 }]) {
    for (const [ratio, rate] of roofOf(far, axes)) assert.ok(ratio >= 1 && ratio <= 100 && rate >= 9.99 && rate <= 1001, `${ratio} ${rate}`);
  }
  for (const numbers of [[1], [5e-7, 3e12], [1e-300, 1e300]]) {
    const { low, high, ticks } = axisOf(numbers);
    assert.ok(low < high && ticks.length <= 8 && ticks[0] === low, `${low} ${high} ${ticks}`);
  }
});
