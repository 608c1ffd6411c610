// The tree of calls of a time: as an icicle or a flame, and as a tree to open and close.

import { colourOf } from "./colour.mjs";
import { make } from "./elements.mjs";
import { Choice } from "./choice.mjs";
import { duration, percent, plural, shown } from "./format.mjs";

const ROW = 19;
const LEAST = 2;
const LABEL_FROM = 26;

/** Which of the nodes lie where when one of them is as wide as all: place, begin and width as shares of 1. */
export function placed(nodes, total, focus = null) {
  const of = focus === null ? { depth: 0, total_ns: total } : nodes[focus];
  const begin = new Map();
  const next = new Map();
  const found = [];
  const isAbove = new Set();
  for (let at = focus; at !== null; at = nodes[at].parent) isAbove.add(at);
  nodes.forEach((node, at) => {
    const from = next.get(node.parent) ?? (node.parent === null ? 0 : begin.get(node.parent));
    begin.set(at, from);
    next.set(node.parent, from + node.total_ns);
  });
  const zero = focus === null ? 0 : begin.get(focus);
  nodes.forEach((node, at) => {
    if (isAbove.has(at)) return found.push({ at, from: 0, width: 1 });
    const from = (begin.get(at) - zero) / of.total_ns;
    const width = node.total_ns / of.total_ns;
    if (from < -1e-9 || from + width > 1 + 1e-9) return undefined;
    return found.push({ at, from, width });
  });
  return found;
}

export class Flame {
  /**
   * @param {any} server
   * @param {{traces: any[], time: () => {time: [number, number] | null, isSelected: boolean}, find: (text: string) => void, isDark: () => boolean}} does
   */
  constructor(server, { traces, time, find, isDark }) {
    this.server = server;
    this.time = time;
    this.find = find;
    this.isDark = isDark;
    this.of = "gpu";
    this.isFlame = false;
    this.focus = null;
    this.choice = new Choice(traces, () => this.ask());
    const choice = (label, words, pick) => make("span", { role: "group", "aria-label": label }, words.map(([value, word]) =>
      make("button", { type: "button", "data-value": value, click: () => pick(value) }, word)));
    this.widths = choice("What the width is", [["gpu", "GPU time"], ["cpu", "CPU time"]], (value) => {
      this.of = value;
      this.ask();
    });
    this.layouts = choice("How it is drawn", [["icicle", "Icicle"], ["flame", "Flame"], ["tree", "Tree"]], (value) => {
      this.layout = value;
      this.draw();
    });
    this.layout = "icicle";
    this.said = make("p", { class: "soft", role: "status" });
    this.command = make("code", {});
    this.place = make("div", { class: "flame" });
    this.root = make("div", {}, make("div", { class: "controls" }, this.choice.root, this.widths, this.layouts), this.said, this.place, make("p", {}, this.command));
    new ResizeObserver(() => this.tree && this.layout !== "tree" && this.width !== this.place.clientWidth && this.draw()).observe(this.place);
  }

  async ask() {
    const { time, isSelected } = this.time();
    this.asking?.abort();
    this.asking = new AbortController();
    this.asked = `${this.of} ${time}`;
    this.said.classList.remove("wrong");
    this.said.textContent = "Adding up the calls";
    try {
      const tree = await this.server.tree(this.of, time, this.choice.source, this.asking.signal);
      this.tree = tree;
      this.focus = null;
      const where = time ? (isSelected ? "in the selected time" : "in the time seen") : "in the trace";
      const left = tree.left_out ? `; ${plural(tree.left_out, "frame is", "frames are")} too small to be seen` : "";
      this.said.textContent = tree.nodes.length
        ? `${duration(tree.total_ns)} of ${this.of === "gpu" ? "operations that calls launched" : "threads in calls"} which begin ${where}${left}`
        : `No call ${this.of === "gpu" ? "that launched an operation " : ""}begins ${where}.`;
      this.command.textContent = shown(tree.command);
      this.draw();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.said.textContent = shown(error.message);
      this.said.classList.add("wrong");
      this.place.replaceChildren();
    }
  }

  /** Asks when the pane is looked at, if it shows another time. */
  shown() {
    if (this.asked !== `${this.of} ${this.time().time}`) this.ask();
  }

  draw() {
    for (const button of this.widths.children) button.setAttribute("aria-pressed", String(button.dataset.value === this.of));
    for (const button of this.layouts.children) button.setAttribute("aria-pressed", String(button.dataset.value === this.layout));
    if (!this.tree) return;
    if (this.layout === "tree") this.drawTree();
    else this.drawFrames();
  }

  words(node) {
    const { tree } = this;
    return `${tree.names[node.name]}: ${duration(node.total_ns)} (${percent(node.total_ns / Math.max(tree.total_ns, 1))}), of that ${duration(node.own_ns)} in itself`;
  }

  drawFrames() {
    const { tree, place } = this;
    this.width = place.clientWidth;
    const width = this.width || 800;
    const deepest = tree.nodes.reduce((most, node) => Math.max(most, node.depth), 0) + 1;
    place.style.height = `${tree.nodes.length ? deepest * ROW : 0}px`;
    place.removeAttribute("role");
    const focused = document.activeElement?.dataset?.node;
    place.replaceChildren(...placed(tree.nodes, tree.total_ns, this.focus).filter((one) => one.width * width >= LEAST).map(({ at, from, width: share }) => {
      const node = tree.nodes[at];
      const frame = make("button", {
        type: "button", class: "frame", title: shown(this.words(node)), "data-node": String(at), tabindex: at === (this.focus ?? 0) ? "0" : "-1",
        click: () => {
          this.focus = this.focus === at ? null : at;
          this.draw();
          this.place.querySelector(`[data-node="${at}"]`)?.focus();
        },
        keydown: (event) => this.key(event, at),
        dblclick: () => this.find(tree.names[node.name]),
      }, share * width > LABEL_FROM ? shown(tree.names[node.name]) : null);
      frame.setAttribute("aria-label", shown(this.words(node)));
      const { fill, label } = colourOf(tree.names[node.name], 0, this.isDark());
      frame.style.background = `rgb(${fill.join()})`;
      frame.style.color = `rgb(${label.join()})`;
      frame.style.left = `${from * 100}%`;
      frame.style.width = `calc(${share * 100}% - 1px)`;
      frame.style[this.layout === "flame" ? "bottom" : "top"] = `${node.depth * ROW}px`;
      return frame;
    }));
    if (focused !== undefined) place.querySelector(`[data-node="${CSS.escape(focused)}"]`)?.focus();
  }

  /** Arrows go to the frame around, to the widest inside, and to the neighbours. */
  key(event, at) {
    const { nodes } = this.tree;
    const inward = this.layout === "flame" ? "ArrowUp" : "ArrowDown";
    const outward = this.layout === "flame" ? "ArrowDown" : "ArrowUp";
    const siblings = nodes.map((node, place) => place).filter((place) => nodes[place].parent === nodes[at].parent);
    const to = {
      [outward]: nodes[at].parent,
      [inward]: nodes.findIndex((node) => node.parent === at),
      ArrowLeft: siblings[siblings.indexOf(at) - 1],
      ArrowRight: siblings[siblings.indexOf(at) + 1],
    }[event.key];
    if (!["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    this.place.querySelector(`[data-node="${to}"]`)?.focus();
  }

  /** The same as a tree, of which the first levels are open. */
  drawTree() {
    const { tree, place } = this;
    place.style.height = "";
    const children = new Map();
    tree.nodes.forEach((node, at) => children.set(node.parent, [...(children.get(node.parent) ?? []), at]));
    const part = (at) => {
      const node = tree.nodes[at];
      const inside = children.get(at) ?? [];
      const line = [
        make("span", { class: "number" }, duration(node.total_ns)), make("span", { class: "number soft" }, percent(node.total_ns / Math.max(tree.total_ns, 1))),
        make("span", { class: "number soft" }, duration(node.own_ns)), make("span", { class: "name" }, shown(tree.names[node.name])),
      ];
      if (!inside.length) return make("li", { class: "leaf" }, line);
      const body = make("ul", {});
      const details = make("details", {
        toggle: () => {
          if (details.open && !body.children.length) body.append(...inside.map(part));
        },
      }, make("summary", {}, line), body);
      details.open = node.depth < 3;
      return make("li", {}, details);
    };
    place.replaceChildren(make("p", { class: "soft" }, "total, share, in itself"), make("ul", { class: "tree" }, (children.get(null) ?? []).map(part)));
  }
}
