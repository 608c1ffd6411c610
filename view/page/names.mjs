// The table of what is seen or selected: kernels, calls and markers by name, to sort, to filter, to go through.

import { figures, make } from "./elements.mjs";
import { count, duration, percent, shown } from "./format.mjs";

const COLUMNS = [
  ["name", "name"], ["count", "events"], ["total", "total"], [null, "share"], [null, ""], ["mean", "mean"], ["p50", "p50"], ["p99", "p99"], ["max", "longest"],
];
const SORTS = [["all", "All"], ["operations", "Operations"], ["calls", "Calls"], ["markers", "Markers"]];
const REST_MS = 150;

export class Names {
  /**
   * @param {import("./panes.mjs").Panes} panes
   * @param {{measure: () => void, next: (name: number, isBack: boolean) => void}} does
   */
  constructor(panes, { measure, next }) {
    this.panes = panes;
    this.measure = measure;
    this.next = next;
    this.asked = { by: "total", ascending: false, sort: "all", q: "" };
    this.query = make("input", {
      type: "search", placeholder: "Filter names", "aria-label": "Filter names", autocomplete: "off", spellcheck: "false",
      input: () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.ask({ q: this.query.value.trim() }), REST_MS);
      },
    });
    this.sorts = SORTS.map(([sort, word]) => make("button", { type: "button", click: () => this.ask({ sort }) }, word));
    this.heads = COLUMNS.map(([by, word], at) =>
      make("th", { scope: "col", class: at && word ? "number" : undefined },
        by ? make("button", { type: "button", class: "sort", click: () => this.order(by) }, word) : word));
    this.body = make("tbody", {});
    this.above = make("div", {});
    this.below = make("p", { class: "soft" });
    this.root = make("div", { class: "names" }, this.above,
      make("div", { class: "controls" }, this.query, make("span", { role: "group", "aria-label": "What is in the table" }, this.sorts)),
      make("table", { class: "grid" }, make("thead", {}, make("tr", {}, this.heads)), this.body), this.below);
    this.mark();
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
    COLUMNS.forEach(([by], at) => {
      if (by) this.heads[at].setAttribute("aria-sort", by !== this.asked.by ? "none" : this.asked.ascending ? "ascending" : "descending");
    });
    SORTS.forEach(([sort], at) => this.sorts[at].setAttribute("aria-pressed", String(sort === this.asked.sort)));
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
    const digits = (text) => make("td", { class: "number" }, text);
    const greatest = Math.max(1, ...found.names.map((of) => of.total_ns));
    const focused = document.activeElement?.dataset?.name;
    this.body.replaceChildren(...found.names.map((of) => {
      const bar = make("span", { class: "share" });
      bar.style.width = `${Math.max(1, (90 * of.total_ns) / greatest)}px`;
      const link = make("button", {
        type: "button", class: "link", "data-name": String(of.name), title: "Go to the next one; with Shift to the one before",
        click: (event) => this.next(of.name, event.shiftKey),
      }, panes.chip(of.name), shown(names[of.name] ?? ""));
      return make("tr", {},
        make("td", {}, link), digits(count(of.count)), digits(duration(of.total_ns)),
        digits(percent(of.total_ns / Math.max(found.total_ns, 1))), make("td", {}, bar),
        digits(duration(of.mean_ns)), digits(duration(of.p50_ns)), digits(duration(of.p99_ns)), digits(duration(of.max_ns)));
    }));
    if (focused) this.body.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus();
    this.above.replaceChildren(figures([
      [isSelected ? "selected time" : "time seen", duration(to - from)], ["events", count(found.count)], ["total", duration(found.total_ns)],
      ["busy", `${duration(found.busy_ns)} (${percent(found.busy_ns / Math.max(to - from, 1))})`],
      ["mean", duration(found.mean_ns)], ["p50", duration(found.p50_ns)], ["p99", duration(found.p99_ns)],
      ["longest", duration(found.max_ns)],
    ]));
    const hidden = found.all_names - found.names.length;
    this.below.textContent = hidden > 0 ? `and ${count(hidden)} more names` : found.count ? "" : "No events.";
  }
}
