// Reports of the commands on what is seen or selected: the same numbers, as tables that lead to the timeline.

import { figures, make } from "./elements.mjs";
import { Choice } from "./choice.mjs";
import { bytes, count, duration, number, plural, shown } from "./format.mjs";
import { Table } from "./table.mjs";

export const REPORTS = [
  ["gaps", "Gaps"], ["copies", "Copies"], ["markers", "Markers"], ["queues", "Queues"], ["memory", "Memory"], ["graphs", "Graphs"], ["operators", "Operators"],
];

/** Numbers that count nothing. */
const IDS = ["pid", "tid", "session", "gpu", "queue", "rank", "gpuId", "queueId", "node"];

/** A key of a report in words. */
const words = (key) => key.replace(/_(ns|bytes)$/, "").replaceAll("_", " ");

/** A value as people read it, by its key. */
export function readable(key, value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number" || IDS.includes(key)) return String(value);
  if (key.endsWith("_ns")) return duration(value);
  if (key.endsWith("bytes")) return bytes(value);
  if (key.endsWith("percent")) return `${value.toFixed(1)} %`;
  return number(value);
}

/** Columns that stand before others, in this order. */
const FIRST = [
  "session", "gpu", "queue", "place", "pid", "host", "rank", "name", "kind", "op_type", "cause", "function", "start_ns", "from_ns", "to_ns", "calls", "operations", "count", "gaps",
  "lost", "started", "duration_ns", "total_ns",
];

const isScalar = (value) => value === null || typeof value !== "object";

export class Reports {
  /**
   * @param {any} server
   * @param {{traces: any[], time: () => {time: [number, number] | null, isSelected: boolean}, go: (from: number, to: number) => void, select: (which: any) => void, find: (text: string) => void, derive: (what: string) => void}} does
   */
  constructor(server, { traces, time, go, select, find, derive }) {
    Object.assign(this, { server, time, go, select, find, derive });
    this.which = "gaps";
    this.choice = new Choice(traces, () => this.ask());
    this.buttons = new Map(REPORTS.map(([which, word]) => [which, make("button", { type: "button", click: () => this.pick(which) }, word)]));
    this.said = make("p", { class: "soft", role: "status" });
    this.command = make("code", {});
    this.body = make("div", { class: "report" });
    this.root = make("div", {}, make("div", { class: "controls" }, this.choice.root, make("span", { role: "group", "aria-label": "Which report" }, [...this.buttons.values()])),
      this.said, this.body, make("p", {}, this.command));
    this.mark();
  }

  mark() {
    for (const [which, button] of this.buttons) button.setAttribute("aria-pressed", String(which === this.which));
  }

  pick(which) {
    this.which = which;
    this.mark();
    return this.ask();
  }

  shown() {
    if (this.asked !== `${this.which} ${this.time().time}`) this.ask();
  }

  async ask() {
    const { which } = this;
    const { time, isSelected } = this.time();
    this.asking?.abort();
    this.asking = new AbortController();
    this.asked = `${which} ${time}`;
    this.said.classList.remove("wrong");
    this.said.textContent = "Reading the trace";
    this.body.replaceChildren();
    try {
      const { report, command, missing } = await this.server.report(which, time, this.choice.source, this.asking.signal);
      const isWhole = ["graphs", "operators"].includes(which);
      const where = time && !isWhole ? `what begins in the ${isSelected ? "selected time" : "time seen"}` : "all of the trace";
      this.said.textContent = missing ? shown(missing) : `Of ${where}.`;
      this.command.textContent = shown(command);
      this.body.replaceChildren(...[this[`of_${which}`](report)].flat().filter(Boolean));
    } catch (error) {
      if (error.name === "AbortError") return;
      this.said.textContent = shown(error.message);
      this.said.classList.add("wrong");
    }
  }

  /** Records as a table. What has a time leads to it. */
  table(name, records, { open, heads, height } = {}) {
    if (!records?.length) return null;
    const isThere = (key) => records.some((record) => isScalar(record[key]) && record[key] !== null && record[key] !== undefined);
    const all = new Set([...FIRST, ...Object.keys(records[0])]);
    const keys = (heads ?? [...all]).filter(isThere);
    const columns = keys.map((key) => ({
      name: words(key),
      head: key,
      isNumber: records.some((record) => typeof record[key] === "number"),
      value: (record) => (isScalar(record[key]) ? record[key] : JSON.stringify(record[key])),
      text: (record) => readable(key, isScalar(record[key]) ? record[key] : JSON.stringify(record[key])),
    }));
    const hasTime = records.some((record) => typeof record.start_ns === "number");
    const leads = open ?? (hasTime ? (record) => this.go(record.start_ns, record.start_ns + (record.idle_ns ?? record.duration_ns ?? record.call_ns ?? 0)) : undefined);
    return make("section", {}, make("h2", {}, name), new Table({ name, columns, rows: records, open: leads, height }).root);
  }

  of_gaps(gpus) {
    if (!gpus.length) return make("p", {}, "No GPU operations begin there.");
    return gpus.map((gpu) => make("div", {},
      make("h2", {}, `GPU ${gpu.gpu}`),
      figures([["busy", duration(gpu.busy_ns)], ["idle", duration(gpu.idle_ns)], ["gaps", count(gpu.gaps)], ["longest", duration(gpu.longest_ns)], ["operations", count(gpu.operations)]]),
      make("div", { class: "columns" },
        this.table("The longest", gpu.longest, { heads: ["start_ns", "idle_ns", "cause", "after", "before"] }),
        this.table("By cause", gpu.causes), this.table("Behind which operation", gpu.after), this.table("By length", gpu.bins))));
  }

  of_copies(kinds) {
    if (!kinds.length) return make("p", {}, "No copies begin there.");
    return [this.table("By kind", kinds), ...kinds.map((kind) => this.table(`${kind.kind ?? kind.name ?? "kind"} by size`, kind.sizes))];
  }

  of_markers({ nodes, all }) {
    if (!nodes.length) return make("p", {}, "No markers begin there.");
    const named = nodes.map((node) => ({ ...node, marker: `${"   ".repeat(node.depth)}${node.name ?? "(in no marker)"}` }));
    const heads = ["marker", ...Object.keys(nodes[0]).filter((key) => !["node", "parent", "depth", "name"].includes(key) && nodes.some((node) => isScalar(node[key])))];
    return [
      this.table("Tree of markers", named, { heads, open: (node) => node.name && this.find(node.name.split("#")[0].trim()), height: 420 }),
      all > nodes.length ? make("p", { class: "soft" }, `and ${count(all - nodes.length)} more`) : null,
      this.shows("markers", "Show what they ran as a row of each GPU"),
    ];
  }

  of_queues(queues) {
    if (!queues.length) return make("p", {}, "No operations begin there.");
    const waits = (of, word) => Object.fromEntries(Object.entries(of).filter(([key]) => key !== "operations").map(([key, value]) => [`${word}_${key}`, value]));
    const rows = queues.map(({ delay, empty, bins, ...queue }) => ({ ...queue, ...waits(delay, "waits") }));
    return [this.table("Queues", rows), this.shows("streams", "Show a row for each stream")];
  }

  of_memory(processes) {
    if (!processes.length) return make("p", {}, "No calls that allocate memory begin there.");
    return [
      this.table("What is allocated", processes.map(({ peak_ns, ...of }) => ({ ...of, peak_at_ns: peak_ns }))),
      ...processes.map((of) => this.table(`Never freed: process ${of.pid}, ${of.place}`, of.largest_left.map(({ time_ns, ...left }) => ({ ...left, start_ns: time_ns })))),
      this.shows("memory", "Show it over time, and each allocation, as rows"),
    ];
  }

  /** An answer of a question that the server asked. */
  answer(name, answer) {
    if (!answer) return null;
    const records = answer.rows.map((row, at) => ({ at, ...Object.fromEntries(answer.columns.map((column, place) => [column, answer.is_number[place] && row[place] !== null ? Number(row[place]) : row[place]])) }));
    const events = new Map(answer.events.map((event) => [event.at, event]));
    // Times of the trace's clock are too large for numbers of the page: the event says where it is.
    for (const record of records) if (record.start_ns !== undefined) record.start_ns = events.get(record.at)?.start_ns ?? null;
    const heads = answer.columns.filter((column) => column !== "id");
    const open = events.size ? ({ at }) => {
      const of = events.get(at);
      if (of?.event !== null && of?.event !== undefined) this.select({ event: of.event });
    } : undefined;
    return this.table(name, records, { heads, open });
  }

  of_graphs({ launches, kernels }) {
    return [this.answer("Launches", launches), this.answer("Kernels of each graph", kernels), this.shows("graphs", "Show what each launch ran as a row of each GPU")];
  }

  of_operators({ operators }) {
    return [this.answer("Operators and their kernels", operators), this.shows("markers", "Show what markers and operators ran as a row of each GPU")];
  }

  shows(what, text) {
    return make("p", {}, make("button", { type: "button", click: () => this.derive(what) }, text));
  }

  /** Who recorded what, and what was lost: that first. */
  sessions(contents) {
    const lost = Object.entries(contents.lost ?? {}).map(([cause, records]) => ({ cause, records }));
    const sessions = contents.sessions.map(({ facts, lost: own, ...session }) => ({
      lost: Object.values(own ?? {}).reduce((sum, records) => sum + records, 0),
      ...Object.fromEntries(Object.entries(session).filter(([, value]) => isScalar(value))),
    }));
    const facts = contents.sessions.flatMap((session) => Object.entries(session.facts ?? {}).map(([fact, value]) => ({ session: session.session, fact, value })));
    return [
      lost.length ? this.table("Lost while recording", lost) : make("p", {}, "No records were lost while recording."),
      contents.launches_without_op ? make("p", {}, `${plural(contents.launches_without_op, "launch has", "launches have")} no operation.`) : null,
      this.table("Sessions", sessions),
      this.table("GPUs", contents.gpus.map(({ queues, ...gpu }) => ({ ...gpu, queues: queues?.length }))),
      this.table("Operations", contents.operations),
      this.table("What each session says", facts, { height: 200 }),
    ];
  }
}
