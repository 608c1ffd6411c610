// The table of what is seen or selected: kernels, calls and markers by name, to sort, to filter, to go through.

import { figures, make } from "./elements.mjs";
import { KIND_WORDS } from "./colour.mjs";
import { Choice } from "./choice.mjs";
import { saveButton } from "./csv.mjs";
import { count, duration, exact, percent, plural, shown } from "./format.mjs";
import { Table } from "./table.mjs";

const COLUMNS = [
  ["name", "name"], ["count", "events"], ["total", "total"], [null, "share"], [null, ""], ["mean", "mean"], ["p50", "p50"], ["p99", "p99"], ["max", "longest"],
];
const SORTS = [["all", "All"], ["operations", "Operations"], ["calls", "Calls"], ["markers", "Markers"]];
const REST_MS = 150;

export class Names {
  /**
   * @param {import("./panes.mjs").Panes} panes
   * @param {{measure: () => void, all: () => Promise<any>, next: (name: number, isBack: boolean) => void}} does
   */
  constructor(panes, { measure, all, next }) {
    this.panes = panes;
    this.measure = measure;
    this.all = all;
    this.next = next;
    this.asked = { by: "total", ascending: false, sort: "all", q: "", source: 0 };
    /** The order of events one by one. */
    this.listed = { order: "start", ascending: true };
    this.choice = new Choice(panes.timeline.trace.traces, () => this.ask({ source: this.choice.source }));
    this.query = make("input", {
      type: "search", placeholder: "Filter names", "aria-label": "Filter names", autocomplete: "off", spellcheck: "false",
      input: () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.ask({ q: this.query.value.trim() }), REST_MS);
      },
    });
    this.sorts = SORTS.map(([sort, word]) => make("button", { type: "button", click: () => this.ask({ sort }) }, word));
    this.save = saveButton("names", () => this.forFile().catch((error) => this.failed(error.message)));
    this.toggle = make("button", { type: "button", "aria-pressed": "false", click: () => this.each(!this.isEach) }, "Each event");
    this.isEach = false;
    this.heads = COLUMNS.map(([by, word], at) =>
      make("th", { scope: "col", class: at && word ? "number" : undefined },
        by ? make("button", { type: "button", class: "sort", click: () => this.order(by) }, word) : word));
    this.body = make("tbody", {});
    this.above = make("div", {});
    this.below = make("p", { class: "soft" });
    this.root = make("div", { class: "names" }, this.above,
      make("div", { class: "controls" }, this.choice.root, this.query, make("span", { role: "group", "aria-label": "What is in the table" }, this.sorts), this.toggle, this.save),
      this.list = make("div", { hidden: "" }), this.table = make("table", { class: "grid" }, make("thead", {}, make("tr", {}, this.heads)), this.body), this.below);
    this.mark();
  }

  /** Is about one of two traces from now on. */
  pick(source) {
    this.choice.pick(source);
    this.asked.source = source;
  }

  ask(change) {
    Object.assign(this.asked, change);
    this.mark();
    this.measure();
  }

  order(by) {
    this.ask(this.asked.by === by ? { ascending: !this.asked.ascending } : { by, ascending: by === "name" });
  }

  /** What the buttons say of the order and of what is in the table. */
  mark() {
    for (const part of [this.table, this.save, this.below]) part.hidden = this.isEach;
    this.list.hidden = !this.isEach;
    COLUMNS.forEach(([by], at) => {
      if (by) this.heads[at].setAttribute("aria-sort", by !== this.asked.by ? "none" : this.asked.ascending ? "ascending" : "descending");
    });
    SORTS.forEach(([sort], at) => this.sorts[at].setAttribute("aria-pressed", String(sort === this.asked.sort)));
  }

  /** Shows events one by one, or by name. */
  each(isEach) {
    this.isEach = isEach;
    this.mark();
    this.toggle.setAttribute("aria-pressed", String(isEach));
    this.measure();
  }

  /** Shows events one by one. */
  showEach(found, [from, to], isSelected) {
    const { panes } = this;
    const { names, kinds } = panes.timeline;
    const rows = found.event.map((event, at) => ({ event, start: found.start_ns[at], length: found.duration_ns[at], name: found.name[at], row: found.row[at], id: found.id[at] }));
    const table = new Table({
      name: "events",
      columns: [
        { name: "name", order: "name", value: ({ name }) => names[name] ?? "", chip: ({ name }) => panes.chip(name) },
        { name: "begin", head: "begin_ns", order: "start", isNumber: true, value: ({ start }) => start, text: ({ start }) => exact(start) },
        { name: "duration", head: "duration_ns", order: "duration", isNumber: true, value: ({ length }) => length, text: ({ length }) => duration(length) },
        { name: "kind", order: "kind", value: ({ name }) => KIND_WORDS[kinds[name]] ?? "" },
        { name: "where", order: "row", value: ({ row }) => panes.place({ row }) },
        { name: "id", order: "id", isNumber: true, value: ({ id }) => id },
      ],
      rows,
      open: ({ event }) => panes.select({ event }),
      ...this.listed,
      // There may be more than the table has: the server knows which come first.
      ask: (order, ascending) => {
        this.listed = { order, ascending };
        this.measure();
      },
    });
    const where = isSelected ? "the selected time" : "the time seen";
    const cut = found.all > rows.length ? `, the first ${count(rows.length)} of ${count(found.all)} in this order` : "";
    this.list.replaceChildren(make("p", { class: "soft" }, `In ${where}, ${duration(to - from)}${cut}`), table.root);
    table.draw();
  }

  /** The table for a file: all names, times in ns. */
  async forFile() {
    const { names } = this.panes.timeline;
    const heads = ["name", "count", "total_ns", "mean_ns", "p50_ns", "p99_ns", "max_ns"];
    return [heads, (await this.all()).names.map((of) => [names[of.name] ?? "", ...heads.slice(1).map((head) => of[head])])];
  }

  /** How many events are how long, as bars. */
  histogram(bins) {
    if (!bins?.length) return null;
    const most = Math.max(...bins.map((bin) => bin.count));
    return make("div", { class: "histogram", role: "img", "aria-label": `Durations: ${bins.map((bin) => `${count(bin.count)} from ${duration(bin.from_ns)}`).join(", ")}` },
      bins.map((bin) => {
        const bar = make("span", { class: "bar" });
        bar.style.height = `${Math.max(bin.count ? 1 : 0, Math.round((38 * bin.count) / most))}px`;
        const to = bin.to_ns === null ? "" : ` to ${duration(bin.to_ns)}`;
        return make("span", { class: "bin", title: `${plural(bin.count, "event", "events")} of ${duration(bin.from_ns)}${to}` }, bar, make("span", { class: "soft" }, duration(bin.from_ns).replace(/\.0+ /, " ")));
      }));
  }

  failed(words) {
    this.above.replaceChildren(make("p", { class: "wrong" }, shown(words)));
    this.body.replaceChildren();
    this.below.textContent = "";
  }

  /** Shows the numbers of a time. */
  show(found, [from, to], isSelected) {
    const { panes } = this;
    const { names } = panes.timeline;
    this.found = found;
    const digits = (text) => make("td", { class: "number" }, text);
    const greatest = Math.max(1, ...found.names.map((of) => of.total_ns));
    const focused = document.activeElement?.dataset?.name;
    this.body.replaceChildren(...found.names.map((of) => {
      const bar = make("span", { class: "share" });
      bar.style.width = `${Math.max(1, (90 * of.total_ns) / greatest)}px`;
      const name = shown(names[of.name] ?? "");
      const link = make("button", {
        type: "button", class: "link", "data-name": String(of.name), title: `${name}\nGo to the next one; with Shift to the one before`,
        click: (event) => this.next(of.name, event.shiftKey),
      }, panes.chip(of.name), make("span", {}, name));
      return make("tr", {},
        make("td", {}, link), digits(count(of.count)), digits(duration(of.total_ns)),
        digits(percent(of.total_ns / Math.max(found.total_ns, 1))), make("td", {}, bar),
        digits(duration(of.mean_ns)), digits(duration(of.p50_ns)), digits(duration(of.p99_ns)), digits(duration(of.max_ns)));
    }));
    if (focused) this.body.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus();
    const bars = this.histogram(found.histogram);
    this.above.replaceChildren(figures([
      [isSelected ? "selected time" : "time seen", duration(to - from)], ["events", count(found.count)], ["total", duration(found.total_ns)],
      ["busy", `${duration(found.busy_ns)} (${percent(found.busy_ns / Math.max(to - from, 1))})`],
      ["at once", found.busy_ns ? `${found.concurrency.toFixed(2)} mean, ${count(found.most_at_once)} most` : ""],
      ["mean", duration(found.mean_ns)], ["p50", duration(found.p50_ns)], ["p99", duration(found.p99_ns)],
      ["longest", duration(found.max_ns)],
    ]), ...(bars ? [bars] : []));
    const hidden = found.all_names - found.names.length;
    this.below.textContent = hidden > 0 ? `and ${plural(hidden, "more name", "more names")}, which CSV has too` : found.count ? "" : "No events.";
  }
}
