// The names of the rows beside them: what opens and closes, pins, hides and moves them.

import { shown, valueOf } from "./format.mjs";
import { make } from "./elements.mjs";
import { keyOfHost } from "./layout.mjs";

const TOOLS = [
  ["pin", "Pin to the top (P)", "⚲"],
  ["up", "Move up", "↑"],
  ["down", "Move down", "↓"],
  ["hide", "Hide (H)", "×"],
];

export class Labels {
  /** @param {import("./timeline.mjs").Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.scrolled = document.getElementById("labels");
    this.pinned = document.getElementById("pinned");
    const gutter = document.getElementById("gutter");
    // A row that gets the focus is scrolled to by the browser: the timeline goes with it.
    gutter.addEventListener("scroll", () => {
      const by = gutter.scrollTop;
      gutter.scrollTop = 0;
      if (by) timeline.scrollTo(timeline.scroll + by);
    });
    /** What a tool does with what has a key. @type {(tool: string, key: string) => void} */
    this.does = () => {};
  }

  show(lines, pinnedHeight) {
    this.pinned.style.height = `${pinnedHeight}px`;
    this.pinned.hidden = !pinnedHeight;
    const labels = new Map();
    for (const line of lines) {
      const of = line.sort === "node" ? this.host(line.group) : (line.counter ?? line.track ?? line.group);
      const key = `${line.isPinned} ${of.key}`;
      const height = line.sort === "row" ? of.rows.length * line.height : line.height;
      if (!labels.has(key)) labels.set(key, { line, of, top: line.top, height, element: null });
    }
    this.all = [...labels.values()];
    this.pinned.replaceChildren(...this.all.filter(({ line }) => line.isPinned).map((label) => this.label(label)));
    this.labels = this.all.filter(({ line }) => !line.isPinned);
    this.scrolled.replaceChildren();
    this.to = -Infinity;
    this.scrollTo(this.timeline.scroll);
  }

  host(group) {
    return { key: keyOfHost(group), label: group.host ? `node ${group.host}` : "no known node", detail: "" };
  }

  label({ line, of, top, height }) {
    const { closed } = this.timeline;
    const isHead = line.sort === "group";
    const isCounter = line.sort === "counter";
    const isOpen = !closed.has(of.key);
    const canClose = line.sort === "node" || (isHead && !line.isPinned) || (!isHead && !isCounter && of.rows.length > 1);
    const host = of.host ? `${of.host} ` : "";
    const more = isHead ? host + of.detail : isCounter ? `up to ${valueOf(of, of.greatest)}` : of.not_shown ? `${of.not_shown} more overlap` : "";
    // A pinned row stands alone: its whole path is said.
    const name = line.isPinned && !isHead ? `${line.group.label} · ${of.label}` : of.label;
    const title = shown([line.isPinned || isHead ? "" : line.group.label, of.label, of.host, of.detail].filter(Boolean).join(" · "));
    const open = make("button", {
      type: "button",
      class: "open",
      title,
      "aria-expanded": canClose ? String(isOpen) : undefined,
    }, make("span", { class: "mark", "aria-hidden": "true" }, canClose ? (isOpen ? "▼" : "▶") : ""),
      make("span", { class: "name" }, shown(name)), more ? make("span", { class: "more" }, shown(more)) : null);
    const tools = make("span", { class: "tools" }, line.sort === "node" ? [] : TOOLS.filter(([tool]) => !line.isPinned || tool !== "hide").map(([tool, what, sign]) => {
      const words = tool === "pin" && line.isPinned ? "Pin no longer" : what;
      return make("button", {
        type: "button", "data-tool": tool, tabindex: "-1", title: words, "aria-label": `${words}: ${shown(of.label)}`,
        "aria-pressed": tool === "pin" ? String(Boolean(line.isPinned)) : undefined,
        click: (event) => {
          event.stopPropagation();
          this.does(tool, of.key);
        },
      }, sign);
    }));
    const label = make("div", { class: `label ${line.sort === "node" ? "node" : isHead ? "group" : "track"}`, "data-key": of.key }, open, tools);
    if (canClose) label.addEventListener("click", () => this.timeline.toggle(of.key));
    label.addEventListener("keydown", (event) => this.key(event, label));
    label.style.top = `${top}px`;
    label.style.height = `${height}px`;
    return label;
  }

  /** Arrows go to what can be done with a row, and to the rows beside it. */
  key(event, label) {
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    event.stopPropagation();
    const buttons = [...label.querySelectorAll("button")];
    const beside = buttons[buttons.indexOf(document.activeElement) + { ArrowRight: 1, ArrowLeft: -1 }[event.key]];
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) this.focus(this.all[this.all.findIndex(({ of }) => of.key === label.dataset.key) + by]?.of.key);
    else beside?.focus();
  }

  /** Labels are elements where they are seen, and as far again on both sides; the one with the focus stays. */
  scrollTo(y) {
    this.scrolled.style.transform = `translateY(${-y}px)`;
    const tall = this.timeline.plot.clientHeight;
    if (y >= this.from && y + tall <= this.to) return;
    [this.from, this.to] = [y - tall, y + 2 * tall];
    let next = this.scrolled.firstElementChild;
    for (const label of this.labels) {
      const isNear = (label.top < this.to && label.top + label.height > this.from) || label.element?.contains(document.activeElement);
      if (label.element && label.element === next) next = next.nextElementSibling;
      else if (isNear) this.scrolled.insertBefore((label.element = this.label(label)), next);
      if (!isNear && label.element) {
        label.element.remove();
        label.element = null;
      }
    }
  }

  focus(key) {
    const open = () => document.querySelector(`#gutter [data-key="${CSS.escape(key)}"] .open`);
    const label = this.labels.find(({ of }) => of.key === key);
    if (!open() && label) this.timeline.scrollTo(label.top - this.timeline.plot.clientHeight / 2);
    open()?.focus();
  }
}
