// Tests of what the page knows without a browser: node model.mjs FOLDER, the folder of the page's files.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import vm from "node:vm";

const source = ["values.js", "model.js"].map((file) => readFileSync(process.argv[2] + "/" + file, "utf8")).join("\n");
const { shown, TableModel } = vm.runInNewContext(source + "\n({ shown, TableModel })");

for (const [kind, value, text] of [
  ["ns", 834, "834 ns"], ["ns", 999.6, "1.000 us"], ["ns", 6302, "6.302 us"], ["ns", 157.2e6, "157.2 ms"], ["ns", 12e9, "12.00 s"],
  ["ns", 1234567e9, "1,234,567 s"], ["count", 1234567, "1,234,567"], ["percent", 12.345, "12.3 %"], ["bytes", 1023, "1023 B"],
  ["bytes", 98304, "96.0 KiB"], ["rate", 1.239, "1.24 GB/s"], ["name", "<b>", "<b>"], ["ns", null, ""],
]) assert.equal(shown(kind, value), text);

const columns = [{ kind: "name" }, { kind: "ns" }, { kind: "words" }];
const model = new TableModel({ columns, rows: [["b", 1, "x"], ["a", 3, null], ["C", null, "Y"], ["a", 3, "z"]] });
// From the vm another Array: compared by what is in it.
const is = (expected) => assert.equal(JSON.stringify(model.shown), JSON.stringify(expected));
is([0, 1, 2, 3]);
model.sortBy(1);
is([1, 3, 0, 2]);
model.sortBy(1);
is([0, 1, 3, 2]);
model.sortBy(0);
is([2, 1, 3, 0]);
model.sortBy(2);
is([2, 0, 3, 1]);
model.filter("A");
is([3, 1]);
model.filter("a  z");
is([3]);
model.filter("(.*");
is([]);
model.filter("");
is([2, 0, 3, 1]);
const many = new TableModel({ columns, rows: Array.from({ length: 100000 }, (_, at) => ["row " + at, at, null]) });
for (const [top, first, last] of [[0, 0, 32], [29 * 50000, 49992, 50032], [29 * 100000, 99992, 100000]]) {
  assert.equal(JSON.stringify(many.visible(top, 29 * 24, 29)), JSON.stringify([first, last]));
}
