// Two traces on one axis: what of them lies at one time, what differs by name, and colours that say which is slower.

import { colourOfRatio } from "./colour.mjs";
import { timeOf } from "./dialogs.mjs";
import { figures, make } from "./elements.mjs";
import { count, duration, plural, shown } from "./format.mjs";
import { server } from "./server.mjs";

const SORTS = [["operations", "Operations"], ["calls", "Calls"], ["markers", "Markers"], ["all", "All"]];
const COLUMNS = ["name", "calls A", "calls B", "total A", "total B", "B − A", "mean A", "mean B", "mean B / A", "p50 A", "p50 B", "p99 A", "p99 B"];
const MOST_MARKERS = 200;

/** How much slower B is than A, in words. @param {number} ratio */
export function ratioText(ratio) {
  if (!Number.isFinite(ratio)) return "";
  return `×${ratio.toFixed(ratio < 9.995 ? 2 : ratio < 99.95 ? 1 : 0)}`;
}

export class Compare {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    this.asked = { sort: "operations" };
    this.sorts = SORTS.map(([sort, word]) => make("button", { type: "button", click: () => this.ask(sort) }, word));
    this.colours = make("input", { type: "checkbox", id: "by-ratio", change: () => this.colour() });
    this.by = make("select", { "aria-label": "What lies at one time", change: () => this.chosen() });
    this.nth = make("input", { type: "number", min: "1", value: "1", "aria-label": "Which of these markers", change: () => this.align() });
    this.hand = make("input", { type: "text", size: "12", "aria-label": "How much later B begins than A", placeholder: "0 ms", change: () => this.align() });
    this.said = make("span", { class: "wrong", role: "alert" });
    this.above = make("div", {});
    this.body = make("tbody", {});
    this.below = make("p", { class: "soft" });
    this.root = make("div", { class: "names compare" },
      make("div", { class: "controls" },
        make("label", {}, "Aligned by ", this.by), this.nth, this.hand, this.said,
        make("span", { role: "group", "aria-label": "What is in the table" }, this.sorts),
        make("label", { for: "by-ratio" }, this.colours, " Colour by mean B / A")),
      this.above,
      make("table", { class: "grid" }, make("thead", {}, make("tr", {}, COLUMNS.map((word, at) => make("th", { scope: "col", class: at ? "number" : undefined }, word)))), this.body),
      this.below);
    this.choices([]);
    this.mark();
  }

  /** From the begin of A to that of B, ns. */
  get shift() {
    const [one, other] = this.app.trace.traces;
    return other.shift_ns - one.shift_ns;
  }

  /** What can be chosen to lie at one time. */
  choices(markers) {
    const option = (value, text) => make("option", { value }, text);
    const names = this.app.timeline.names;
    this.by.replaceChildren(
      option("op", "the first operations"), option("event", "the first events"),
      ...markers.map((of) => option(`marker:${of.name}`, `marker ${shown(names[of.name] ?? "").slice(0, 60)}`)),
      option("hand", "hand: B begins later by"));
    this.by.value = this.kept ?? "op";
    this.chosen(false);
  }

  chosen(isAsked = true) {
    this.kept = this.by.value;
    this.nth.hidden = !this.by.value.startsWith("marker:");
    this.hand.hidden = this.by.value !== "hand";
    if (this.hand.hidden || document.activeElement !== this.hand) this.hand.value = duration(this.shift);
    if (isAsked && this.hand.hidden) this.align();
  }

  /** Asks the server to lay B where it is to be. */
  async align() {
    const [by, name] = this.by.value.split(":");
    const ns = timeOf(this.hand.value) ?? NaN;
    if (by === "hand" && Number.isNaN(ns)) return this.say("A time, such as 1.5 ms or -20us");
    await this.ordered(by === "hand" ? { by, ns: Math.round(ns) } : { by, ...(name ? { name, nth: this.nth.value || 1 } : {}) });
  }

  async ordered(how) {
    this.say("");
    try {
      await server.align(how);
      await this.app.growth.renew();
      this.hand.value = duration(this.shift);
      this.app.keep(true);
    } catch (error) {
      if (error.name !== "AbortError") this.say(error.message);
    }
  }

  say(words) {
    this.said.textContent = shown(words);
  }

  ask(sort) {
    this.asked.sort = sort;
    this.mark();
    this.measure();
  }

  mark() {
    SORTS.forEach(([sort], at) => this.sorts[at].setAttribute("aria-pressed", String(sort === this.asked.sort)));
  }

  /** Asks what differs in the selected time, or in all. */
  async measure() {
    const { app } = this;
    const { timeline } = app;
    const time = timeline.range ?? [0, app.trace.facts.span_ns + 1];
    this.measuring?.abort();
    this.measuring = new AbortController();
    try {
      if (!this.markers) {
        const { names } = await server.deltas([0, app.trace.facts.span_ns + 1], { sort: "markers" }, this.measuring.signal);
        this.markers = names.filter((of) => of.one && of.other).slice(0, MOST_MARKERS);
        await timeline.name([{ name: this.markers.map((of) => of.name) }]);
        this.choices(this.markers);
      }
      const found = await server.deltas(time, this.asked, this.measuring.signal);
      await timeline.name([{ name: found.names.map((of) => of.name) }]);
      this.show(found, Boolean(timeline.range));
    } catch (error) {
      if (error.name !== "AbortError") this.below.textContent = shown(error.message);
    }
  }

  show(found, isSelected) {
    const { timeline, panes } = this.app;
    this.found = found;
    const digits = (text) => make("td", { class: "number" }, text);
    const of = (durations, what, text) => digits(durations ? text(durations[what]) : "–");
    this.body.replaceChildren(...found.names.map(({ name, one, other }) => {
      const more = (other?.total_ns ?? 0) - (one?.total_ns ?? 0);
      const ratio = one && other && one.mean_ns ? other.mean_ns / one.mean_ns : NaN;
      const cell = digits(one ? (other ? ratioText(ratio) : "only in A") : "only in B");
      if (Number.isFinite(ratio)) cell.style.boxShadow = `inset 4px 0 rgb(${colourOfRatio(ratio, timeline.dark.matches).fill.join()})`;
      return make("tr", {},
        make("td", {}, make("button", {
          type: "button", class: "link", title: shown(timeline.names[name] ?? ""), click: (event) => this.app.next(name, event.shiftKey),
        }, panes.chip(name), shown(timeline.names[name] ?? ""))),
        of(one, "count", count), of(other, "count", count), of(one, "total_ns", duration), of(other, "total_ns", duration),
        digits(`${more > 0 ? "+" : more < 0 ? "−" : ""}${duration(Math.abs(more))}`),
        of(one, "mean_ns", duration), of(other, "mean_ns", duration), cell,
        of(one, "p50_ns", duration), of(other, "p50_ns", duration), of(one, "p99_ns", duration), of(other, "p99_ns", duration));
    }));
    const [a, b] = [found.one, found.other];
    this.above.replaceChildren(figures([
      ["A", shown(this.app.trace.traces[0].facts.file)], ["B", shown(this.app.trace.traces[1].facts.file)],
      [isSelected ? "selected time, A" : "total A", duration(a.total_ns)], [isSelected ? "selected time, B" : "total B", duration(b.total_ns)],
      ["events A", count(a.count)], ["events B", count(b.count)],
      ["B begins later by", this.shift < 0 ? `−${duration(-this.shift)}` : duration(this.shift)],
    ]));
    const hidden = found.all_names - found.names.length;
    this.below.textContent = hidden > 0 ? `and ${plural(hidden, "more name, which differs", "more names, which differ")} less` : found.names.length ? "" : "No events.";
    this.colour();
  }

  /** Lets each name have the colour of its ratio, or its own again. */
  colour() {
    const { timeline } = this.app;
    timeline.ratios = null;
    if (this.colours.checked && this.found) {
      timeline.ratios = new Map();
      for (const { name, one, other } of this.found.names) {
        if (one?.mean_ns && other) timeline.ratios.set(name, other.mean_ns / one.mean_ns);
      }
    }
    timeline.colours.clear();
    timeline.redraw();
  }
}
