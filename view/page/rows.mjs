// What people do with rows: pin, hide, move, filter, and ask for more of them. Kept in the address, and for traces of the same shape in the browser.

import { asFound, moved, toggled } from "./arrangement.mjs";
import { make } from "./elements.mjs";
import { count, plural, shown } from "./format.mjs";

const REST_MS = 150;

/** Tracks that are worked out when they are asked for. */
export const WORKED = [
  ["streams", "Streams", "a row for each stream of each GPU"],
  ["markers", "Markers on GPUs", "for each marker, from the first start to the last end of what was launched inside of it"],
  ["graphs", "Graph launches", "the same for launches of graphs"],
  ["memory", "Memory", "how much is allocated, and each allocation from its begin to its end"],
  ["bandwidth", "Copy bandwidth", "what copies of a known size move while they run"],
];

export class Rows {
  /**
   * @param {import("./timeline.mjs").Timeline} timeline
   * @param {{isOffered: boolean, changed: () => void, failed: (error: Error) => void, say: (text: string) => void}} does
   */
  constructor(timeline, server, { isOffered, changed, failed, say }) {
    this.timeline = timeline;
    this.server = server;
    this.isOffered = isOffered;
    this.changed = changed;
    this.failed = failed;
    this.say = say;
    /** @type {string[]} */
    this.asked = [];
    this.filter = /** @type {HTMLInputElement} */ (document.getElementById("rows"));
    this.hidden = document.getElementById("hidden");
    timeline.labels.does = (tool, key) => this.use(tool, key);
    // Keys are about what the pointer or the focus was moved to last.
    const middle = document.getElementById("middle");
    middle.addEventListener("pointermove", () => (this.isFocusNewer = false));
    middle.addEventListener("focusin", ({ target }) => (this.isFocusNewer = Boolean(target.closest(".label"))));
    this.filter.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.change({ words: this.filter.value.trim() }), REST_MS);
    });
    this.filter.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.filter.value = "";
      this.change({ words: "" });
      document.getElementById("plot").focus();
    });
    this.hidden.addEventListener("click", () => this.change({ hidden: [] }));
    document.getElementById("rows-menu").hidden = !isOffered;
    this.more = document.getElementById("more");
    for (const [what, word, title] of WORKED) {
      const box = make("input", { type: "checkbox", value: what, change: () => this.want(WORKED.map(([one]) => one).filter((one) => this.box(one).checked)).then(this.changed, this.failed) });
      this.more.append(make("label", { title }, box, word));
    }
  }

  box(what) {
    return /** @type {HTMLInputElement} */ (this.more.querySelector(`[value=${what}]`));
  }

  /** Key of what these rows are remembered by: programs that are recorded again have the same. */
  get shape() {
    const groups = this.timeline.trace.groups.map((group) => (group.is_gpu ? group.key : group.label.replace(/ \d+$/, "")));
    return `rpd:${groups.join("|").slice(0, 2000)}`;
  }

  /** How rows of a trace of this shape were arranged last; keys that it does not have are left out. */
  remembered() {
    try {
      const kept = JSON.parse(localStorage.getItem(this.shape) ?? "null");
      const keys = new Set(this.timeline.trace.groups.flatMap((group) => [group, ...group.tracks, ...group.counters].map((one) => one.key)));
      const of = (list) => (Array.isArray(list) ? list.filter((key) => keys.has(key)) : []);
      return kept && { ...asFound(), pins: of(kept.pins), order: of(kept.order) };
    } catch {
      return null;
    }
  }

  remember() {
    const { pins, order } = this.timeline.arrangement;
    try {
      if (pins.length || order.length) localStorage.setItem(this.shape, JSON.stringify({ pins, order }));
      else localStorage.removeItem(this.shape);
    } catch {
      // A browser that keeps nothing has its reasons.
    }
  }

  /** Shows what the address says; what has to be worked out comes when it is there. */
  apply(state) {
    const { timeline } = this;
    const isSaid = state.pins || state.hidden || state.order || state.rows;
    timeline.arrangement = isSaid
      ? { pins: state.pins ?? [], hidden: state.hidden ?? [], order: state.order ?? [], words: state.rows }
      : (this.remembered() ?? asFound());
    this.filter.value = timeline.arrangement.words;
    this.mark();
    this.want(this.isOffered ? state.derived : []).catch(this.failed);
  }

  state() {
    const { pins, hidden, order, words } = this.timeline.arrangement;
    const list = (keys) => (keys.length ? keys : null);
    return { pins: list(pins), hidden: list(hidden), order: list(order), rows: words, derived: this.asked };
  }

  change(change) {
    Object.assign(this.timeline.arrangement, change);
    this.mark();
    this.timeline.arrange();
    this.remember();
    this.changed();
  }

  mark() {
    const { hidden } = this.timeline.arrangement;
    this.hidden.hidden = !hidden.length;
    this.hidden.textContent = `${count(hidden.length)} hidden`;
  }

  use(tool, key) {
    const { timeline } = this;
    const { arrangement } = timeline;
    const { isFocusNewer } = this;
    const focused = document.activeElement?.closest?.(".label")?.dataset.key;
    if (tool === "pin") this.change({ pins: toggled(arrangement.pins, key) });
    else if (tool === "hide" && timeline.own.has(key)) timeline.makeOwn(key, "", "", null);
    else if (tool === "hide") this.change({ hidden: toggled(arrangement.hidden, key) });
    else this.move(key, tool === "up" ? -1 : 1);
    // Labels are made anew: the one with the focus gets it again.
    if (focused) timeline.labels.focus(focused);
    this.isFocusNewer = isFocusNewer;
    this.say({ pin: arrangement.pins.includes(key) ? "pinned" : "not pinned", hide: "hidden", up: "moved up", down: "moved down" }[tool]);
  }

  move(key, by) {
    const { timeline } = this;
    const { arrangement, shownGroups } = timeline;
    if (arrangement.pins.includes(key)) {
      const pins = moved([], arrangement.pins, key, by);
      if (pins) this.change({ pins });
      return;
    }
    const keys = (parts) => parts.map((part) => part.key);
    const lists = [keys(shownGroups), ...shownGroups.flatMap((group) => [keys(group.tracks), keys(group.counters)])];
    const list = lists.find((one) => one.includes(key));
    const order = list && moved(arrangement.order, list, key, by);
    if (order) this.change({ order });
  }

  /** Has these kinds of tracks worked out and shown. */
  async want(kinds) {
    const { timeline } = this;
    this.asked = kinds;
    for (const [what] of WORKED) {
      this.box(what).checked = kinds.includes(what);
      if (!kinds.includes(what)) timeline.worked.delete(what);
    }
    for (const what of kinds) {
      if (timeline.worked.has(what)) continue;
      const { version } = this.server;
      const groups = await this.server.derive(what);
      // Rows of another reading have other numbers; who shows that asks again.
      if (this.server.version !== version) return;
      if (this.asked.includes(what)) timeline.worked.set(what, groups);
      if (!groups.length) this.say(`The trace has nothing of that kind: ${what}`);
    }
    timeline.arrange();
  }

  /** The key of the row under the pointer or with the focus, which of them is the newer; otherwise of the row of the selected event. */
  get pointed() {
    const { timeline } = this;
    const keyOf = (line) => (line && line.sort !== "node" ? (line.counter ?? line.track ?? line.group).key : null);
    const focused = document.activeElement?.closest?.(".label:not(.node)")?.dataset.key;
    const under = document.querySelector(".label:not(.node):hover")?.dataset.key
      ?? (timeline.pointer >= 0 ? keyOf(timeline.at(timeline.pointer, timeline.pointerY).line) : null);
    return (this.isFocusNewer ? (focused ?? under) : (under ?? focused)) ?? keyOf(timeline.lineOf.get(timeline.selected?.row));
  }

  /** Shows events of the page's own as a group of rows. */
  add(key, label, detail, events) {
    this.timeline.makeOwn(key, label, detail, events);
    this.timeline.scrollTo(0);
    this.say(`${shown(label)}: ${plural(events.length, "event is", "events are")} in rows at the top`);
  }
}
