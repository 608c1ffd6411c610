// The tracks of an overview, without a browser: `node --test`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HEAD, LEAST, MOST, busy, decoded, laidOut, ordered, rowAt, shareOf, sliceAt } from "../tracks.mjs";

const track = (job, rank, node, ops) => ({ job, rank, node, ops, slices: [] });
const DATA = {
  jobs: [{ span_ns: 100 }, { span_ns: 1000 }],
  tracks: [track(0, 0, "n10", 5), track(0, 1, "n9", 7), track(0, 2, "n10", 1), track(1, 0, "n1", 9)],
};
const read = (gpus, busy_ns) => ({ gpus, busy_ns, impossible: 0, shares: new Uint16Array(4) });
const FOUND = [read(1, 50), read(2, 150), read(-1, 0), undefined];

test("tracks are ordered within their job, and equal ones by rank", () => {
  assert.deepEqual(ordered(DATA, FOUND, "rank", false), [0, 1, 2, 3]);
  assert.deepEqual(ordered(DATA, FOUND, "rank", true), [2, 1, 0, 3]);
  assert.deepEqual(ordered(DATA, FOUND, "node", false), [1, 0, 2, 3]);
  assert.deepEqual(ordered(DATA, FOUND, "ops", true), [1, 0, 2, 3]);
  assert.deepEqual(ordered(DATA, FOUND, "busy", true), [1, 0, 2, 3]);
  assert.deepEqual(ordered(DATA, FOUND, "busy", false), [2, 0, 1, 3]);
  assert.deepEqual([0, 1, 2, 3].map((at) => busy(FOUND[at], 100)), [0.5, 0.75, null, null]);
});

test("every track has a place, however many there are", () => {
  const { rows, track: height, height: all } = laidOut(DATA, [0, 1, 2, 3], 1000);
  assert.equal(height, MOST);
  assert.deepEqual(rows.map(({ track: number }) => number), [null, 0, 1, 2, null, 3]);
  assert.deepEqual(rows.map(({ place }) => place), [0, 0, 1, 2, 0, 0]);
  assert.equal(all, 2 * HEAD + 4 * MOST);
  for (const [at, row] of rows.entries()) assert.deepEqual([rowAt(rows, row.y), rowAt(rows, row.y + row.height - 1)], [at, at]);
  const many = { jobs: [{ span_ns: 1 }], tracks: Array.from({ length: 1000 }, (_, rank) => track(0, rank, "", 0)) };
  const low = laidOut(many, ordered(many, [], "rank", false), 800);
  assert.deepEqual([low.track, low.height], [LEAST, HEAD + 1000 * LEAST]);
});

test("an answer is read as it was written", () => {
  const buffer = new ArrayBuffer(2 * (24 + 4));
  const view = new DataView(buffer);
  view.setUint32(0, 7, true);
  view.setInt32(4, 2, true);
  view.setFloat64(8, 12345, true);
  view.setFloat64(16, 1, true);
  view.setUint16(24, 65535, true);
  view.setUint16(26, 1, true);
  view.setUint32(28, 3, true);
  view.setInt32(32, -1, true);
  const [[one, { gpus, busy_ns, impossible, shares }], [two, failed]] = decoded(buffer, 2);
  assert.deepEqual([one, gpus, busy_ns, impossible, ...shares, two, failed.gpus], [7, 2, 12345, 1, 65535, 1, 3, -1]);
});

test("a pixel has the mean of the parts in it, and a time the slice that it is in", () => {
  const shares = Uint16Array.of(0, 65535, 65535, 0);
  assert.deepEqual([shareOf(shares, 0, 1), shareOf(shares, 0.25, 0.5), shareOf(shares, 0.3, 0.31), shareOf(shares, 0.9, 1)], [0.5, 1, 1, 0]);
  const slices = [["-1", -10], ["0", 0], ["4", 40]];
  assert.deepEqual([-20, -1, 0, 39, 40, 99].map((at) => sliceAt({ slices }, at)), ["-1", "-1", "0", "0", "4", "4"]);
  assert.deepEqual([sliceAt({ slices: [] }, 5), sliceAt({ slices: [["9", 9]] }, 5)], ["all", "all"]);
});
