// The code of a kernel: what it needs, its instructions with the lines of the source, its basic blocks as a graph, and how often they ran.

import { folded, make, svg } from "./elements.mjs";
import { bytes, count, duration, plural, shown } from "./format.mjs";

const MOST_LINES = 3000;
const NODE = { width: 118, height: 34, right: 26, below: 30 };
const MOST_BLOCKS = 400;

/** Which way each kind of edge is drawn: never by colour alone. */
export const EDGES = {
  taken: ["taken", ""], "not-taken": ["not taken", "4 3"], branch: ["always", "8 3"], fallthrough: ["goes on", "1 3"],
  call: ["call", "2 2 6 2"], indirect: ["indirect", "6 2 1 2"],
};

/**
 * Places of blocks: a rank for each, below all that lead to it but for the ends of loops; those of a rank beside each other.
 * @param {{edges: {block?: number}[]}[]} blocks
 */
export function placesOf(blocks) {
  const rank = blocks.map(() => 0);
  blocks.forEach((block, at) => {
    for (const { block: to } of block.edges) if (to !== undefined && to > at) rank[to] = Math.max(rank[to], rank[at] + 1);
  });
  const used = new Map();
  return rank.map((row) => {
    const column = used.get(row) ?? 0;
    used.set(row, column + 1);
    return { row, column };
  });
}

/** For each block of a listing, by its address, how often it ran, or how long waves were in it, as a share of the one with the most; and in words.
 * Where active work-items are counted, a block of the listing is counted in parts. */
export function heatOf(counted, { blocks, instructions }) {
  const of = new Map();
  if (!counted) return of;
  const key = ["ticks", "executed", "executed_by_lanes"].find((key) => counted.rows.some((row) => row[key])) ?? "executed";
  const sum = (rows, key) => rows.reduce((sum, row) => (row[key] === null ? sum : (sum ?? 0) + row[key]), null);
  for (const { address, first, instructions: number } of blocks) {
    const last = instructions[first + number - 1]?.address ?? address;
    const rows = counted.rows.filter(({ offset }) => address <= offset && offset <= last);
    const begin = rows.find(({ offset }) => offset === address);
    if (!begin) continue;
    const [executed, ticks] = [sum(rows, "executed"), sum(rows, "ticks")];
    const parts = [];
    if (begin.waves !== null) parts.push(plural(begin.waves, "wave", "waves"));
    if (executed !== null) parts.push(`${plural(executed, "instruction", "instructions")} executed`);
    if (ticks !== null) parts.push(plural(ticks, "tick", "ticks"));
    of.set(address, { share: sum(rows, key) ?? 0, waves: begin.waves, text: parts.join(", ") });
  }
  const most = Math.max(1, ...[...of.values()].map(({ share }) => share));
  of.forEach((block) => { block.share /= most; });
  return of;
}

export class Code {
  constructor(server) {
    this.server = server;
    this.kernel = null;
    this.root = make("div", { class: "code" }, make("p", { class: "soft" }, "Select a kernel: its code is shown here."));
  }

  /** Takes note of the kernel whose code is wanted; it is read when the pane is looked at. */
  want(name, text, source) {
    this.kernel = name === null ? null : { name, text, source };
  }

  shown() {
    if (this.kernel && this.asked !== `${this.kernel.source} ${this.kernel.name}`) this.ask();
  }

  async ask() {
    const { name, text, source } = this.kernel;
    this.asked = `${source} ${name}`;
    this.asking?.abort();
    this.asking = new AbortController();
    this.root.replaceChildren(make("p", { class: "soft", role: "status" }, "Reading the code"));
    try {
      const { signal } = this.asking;
      const found = await this.server.code(name, source, signal);
      this.put(found, text);
      if (found.blocks) (await import("./roofline.mjs")).show(this, name, source, signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.asked = null;
      this.root.replaceChildren(make("p", { class: "wrong" }, shown(error.message)));
    }
  }

  put(found, text) {
    const builds = found.builds.map((build) => this.build(build, heatOf(found.blocks, build.listing)));
    this.root.replaceChildren(...[
      make("div", { class: "title" }, folded(shown(text))),
      this.facts(found.facts),
      found.blocks ? this.counted(found.blocks) : null,
      ...found.missing.map((why) => make("p", { class: "soft" }, shown(why))),
      builds.length ? make("div", { class: "builds" }, builds) : null,
      make("p", {}, make("code", {}, shown(found.command))),
    ].filter(Boolean));
  }

  facts(facts) {
    if (!facts.length) return null;
    const columns = [
      ["build", (row) => row.launches?.candidate ?? "the program's own"], ["for", (row) => row.target], ["VGPR", (row) => row.vgpr], ["AGPR", (row) => row.agpr],
      ["SGPR", (row) => row.sgpr], ["spilled", (row) => row.vgpr_spills === undefined ? "" : row.vgpr_spills + row.sgpr_spills], ["scratch", (row) => row.scratch === undefined ? "" : bytes(row.scratch)],
      ["LDS", (row) => (row.launches?.lds ?? row.lds) === undefined ? "" : bytes(row.launches?.lds ?? row.lds)],
      ["workgroup", (row) => row.launches?.workgroup.join(" × ")], ["waves per SIMD", (row) => row.occupancy && `${row.occupancy.waves} of ${row.occupancy.hardware}`],
      ["limited by", (row) => row.occupancy?.limited_by.join(", ")], ["calls", (row) => row.launches && count(row.launches.calls)], ["total", (row) => row.launches && duration(row.launches.total_ns)],
    ];
    const cell = (value) => (value === null || value === undefined ? "" : shown(String(value)));
    return make("table", { class: "grid" },
      make("thead", {}, make("tr", {}, columns.map(([name]) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, facts.map((row) => make("tr", {}, columns.map(([, value]) => make("td", {}, cell(value(row))))))));
  }

  counted(blocks) {
    const executed = blocks.executed === null ? "" : `: ${plural(blocks.executed, "instruction", "instructions")} executed by waves`;
    return make("p", { class: "soft" }, `Counted in ${plural(blocks.dispatches, "dispatch", "dispatches")}${executed}. The darker, the more of them.`);
  }

  build({ candidate, listing, all_instructions: all }, heat) {
    const lines = make("ol", { class: "lines", tabindex: "0", "aria-label": "Instructions" });
    const starts = new Map(listing.blocks.map((block, at) => [block.first, at]));
    let place = null;
    let block = -1;
    listing.instructions.slice(0, MOST_LINES).forEach((instruction, at) => {
      if (starts.has(at)) {
        block = starts.get(at);
        const of = heat.get(listing.blocks[block].address);
        lines.append(make("li", { class: "block", "data-block": String(block), tabindex: "-1" }, `block ${block}`, of ? make("span", { class: "soft" }, ` ${of.text}`) : null));
      }
      const source = instruction.file ? `${instruction.file}:${instruction.line}` : null;
      if (source && source !== place) lines.append(make("li", { class: "source" }, shown(source)));
      place = source ?? place;
      const bar = make("span", { class: "heat", "aria-hidden": "true" });
      bar.style.opacity = String(heat.get(listing.blocks[block]?.address)?.share ?? 0);
      lines.append(make("li", {}, bar, make("span", { class: "soft" }, instruction.address.toString(16).padStart(6, "0")), " ", shown(instruction.text)));
    });
    const shownLines = Math.min(listing.instructions.length, MOST_LINES);
    return make("section", { class: "build" },
      make("h2", {}, candidate ? `In its place: ${shown(candidate.candidate)}` : "The program's own", ` · ${shown(listing.target)} · ${plural(all, "instruction", "instructions")}, ${plural(listing.blocks.length, "block", "blocks")}`),
      this.lineHeat(listing, heat),
      make("div", { class: "both" }, lines, this.graph(listing, heat, lines)),
      all > shownLines ? make("p", { class: "soft" }, `The first ${count(shownLines)} instructions; the command below shows all.`) : null);
  }

  /** How often the lines of the source ran, where that is known. */
  lineHeat(listing, heat) {
    const of = new Map();
    listing.blocks.forEach((block) => {
      const known = heat.get(block.address);
      if (!known?.waves) return;
      for (const { file, line } of listing.instructions.slice(block.first, block.first + block.instructions)) {
        if (file) of.set(`${file}:${line}`, (of.get(`${file}:${line}`) ?? 0) + known.waves);
      }
    });
    if (!of.size) return null;
    const sorted = [...of].sort(([, one], [, other]) => other - one).slice(0, 40);
    return make("details", {}, make("summary", {}, "Instructions executed by line of the source"),
      make("table", {}, sorted.map(([line, executed]) => {
        const bar = make("span", { class: "share" });
        bar.style.width = `${Math.max(1, (90 * executed) / sorted[0][1])}px`;
        return make("tr", {}, make("th", { scope: "row" }, shown(line)), make("td", { class: "number" }, count(executed)), make("td", {}, bar));
      })));
  }

  graph(listing, heat, lines) {
    const { blocks } = listing;
    if (blocks.length > MOST_BLOCKS) return make("p", { class: "soft" }, `${count(blocks.length)} blocks are too many for a graph: rpd code --dot draws them.`);
    const places = placesOf(blocks).map(({ row, column }) => ({ x: 34 + column * (NODE.width + NODE.right), y: 8 + row * (NODE.height + NODE.below) }));
    const width = Math.max(...places.map(({ x }) => x)) + NODE.width + 60;
    const height = Math.max(...places.map(({ y }) => y)) + NODE.height + 24;
    const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Basic blocks", class: "blocks" });
    const used = new Set();
    blocks.forEach((block, at) => block.edges.forEach(({ kind, block: to }) => {
      if (to === undefined) return;
      const name = kind in EDGES ? kind : "indirect";
      used.add(name);
      const [from, into] = [places[at], places[to]];
      const isBack = to <= at;
      const [x0, y0, x1, y1] = [from.x + NODE.width / 2 + (kind === "taken" ? 14 : -14), from.y + NODE.height, into.x + NODE.width / 2, into.y];
      const side = Math.max(4, Math.min(from.x, into.x) - 24);
      const path = isBack
        ? `M ${from.x} ${from.y + NODE.height / 2} C ${side} ${from.y + NODE.height / 2} ${side} ${into.y + NODE.height / 2} ${into.x - 5} ${into.y + NODE.height / 2}`
        : `M ${x0} ${y0} C ${x0} ${y0 + 22} ${x1} ${y1 - 22} ${x1} ${y1 - 5}`;
      drawing.append(svg("path", { d: path, class: `edge ${name}`, "stroke-dasharray": EDGES[name][1], fill: "none", "marker-end": "url(#end)" }));
    }));
    drawing.prepend(svg("defs", {}, svg("marker", { id: "end", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, svg("path", { d: "M 0 0 L 8 4 L 0 8 z", class: "tip" }))));
    blocks.forEach((block, at) => {
      const { x, y } = places[at];
      const of = heat.get(block.address);
      const words = `block ${at}, ${block.instructions} instructions${of ? `, ${of.text}` : ""}`;
      const node = svg("g", { class: "node", role: "button", tabindex: 0, "aria-label": words },
        svg("rect", { x, y, width: NODE.width, height: NODE.height, rx: 5 }),
        svg("rect", { x, y, width: NODE.width, height: NODE.height, rx: 5, class: "hot", "fill-opacity": (of?.share ?? 0) * 0.8 }),
        svg("text", { x: x + 8, y: y + 14 }, `${at}: ${block.instructions} insns`),
        svg("text", { x: x + 8, y: y + 27, class: "soft" }, of ? (of.waves === null ? "" : plural(of.waves, "wave", "waves")) : block.address.toString(16)),
        svg("title", {}, words));
      const go = () => {
        const line = lines.querySelector(`[data-block="${at}"]`);
        line?.scrollIntoView({ block: "start" });
        line?.focus({ preventScroll: true });
      };
      node.addEventListener("click", go);
      node.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        go();
      });
      drawing.append(node);
    });
    const legend = make("p", { class: "legend" }, [...used].map((name) => make("span", { class: name },
      svg("svg", { width: 26, height: 8, "aria-hidden": "true" }, svg("path", { d: "M 0 4 H 26", class: `edge ${name}`, "stroke-dasharray": EDGES[name][1] })), EDGES[name][0])));
    return make("div", { class: "graph" }, legend, drawing);
  }
}
