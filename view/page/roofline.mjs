// How fast counted kernels compute and move data, below the roof that the peaks of a GPU make: a chart whose axes are logarithmic, and a table.
// The code pane loads this when it shows a kernel whose blocks were counted.

import { make, svg } from "./elements.mjs";
import { count, number, shown } from "./format.mjs";

const CHART = { width: 560, height: 270, left: 62, right: 16, top: 22, bottom: 38 };
const MOST_ROWS = 50;
/** What people say of their GPU: key, name, example. */
const PEAKS = [["gflops", "Peak GFLOP/s", "13400"], ["gbytes", "Peak GB/s", "1024"]];

const STYLE = `
.roofline { margin-top: 14px; max-width: 900px; }
.roofline input { width: 10em; padding: 2px 7px; }
.roofline svg { max-width: 100%; height: auto; }
.roofline .line { stroke: var(--faint); fill: none; }
.roofline .roof { stroke: var(--accent); stroke-width: 2; fill: none; }
.roofline text { fill: var(--soft); font-size: 11px; }
.roofline circle.asked { fill: var(--hot); stroke: var(--text); stroke-width: 1.5; }
.roofline circle.other { fill: var(--back); stroke: var(--soft); stroke-width: 1.5; }
.roofline tr[aria-current] { font-weight: 620; }
`;

/** From the power of ten below the least of these numbers, all above 0, to that above the greatest. @param {number[]} numbers */
export function axisOf(numbers) {
  const powers = numbers.map((one) => Math.min(300, Math.max(-300, Math.log10(one))));
  const low = Math.floor(Math.min(...powers));
  const high = Math.max(Math.ceil(Math.max(...powers)), low + 1);
  const step = Math.ceil((high - low) / 6);
  const ticks = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, at) => low + at * step);
  return { low, high, ticks, share: (value) => (Math.log10(value) - low) / (high - low) };
}

/** The kernels that have a place: a logarithmic axis has none for 0. */
export const placedOf = (kernels) => kernels.filter(({ flops_per_byte: ratio, roofline }) => ratio > 0 && roofline?.gflops_per_s > 0);

/** Both axes: for the kernels, and for what is said of the roof. */
export function axesOf(placed, { gflops, gbytes }) {
  const ratios = placed.map(({ flops_per_byte: ratio }) => ratio);
  const rates = placed.map(({ roofline }) => roofline.gflops_per_s);
  if (gflops && gbytes) ratios.push(gflops / gbytes / 3, (3 * gflops) / gbytes);
  if (gflops) rates.push(gflops, gflops / 9);
  return { across: axisOf(ratios), up: axisOf(rates) };
}

/** Corners of the roof, as far as it is in the chart: flop/byte and GFLOP/s. @returns {[number, number][]} */
export function roofOf({ gflops, gbytes }, { across, up }) {
  const [left, right, bottom, top] = [across.low, across.high, up.low, up.high].map((power) => 10 ** power);
  if (!gbytes) return gflops ? [[left, gflops], [right, gflops]] : [];
  const begin = Math.max(left, bottom / gbytes);
  const ridge = gflops ? gflops / gbytes : top / gbytes;
  const end = Math.min(right, ridge);
  const slope = begin < end ? [[begin, gbytes * begin], [end, gbytes * end]] : [];
  const level = gflops && ridge < right ? [[Math.max(left, ridge), gflops], [right, gflops]] : [];
  return [...slope, ...level];
}

const power = (of) => (of >= -3 && of <= 5 ? number(10 ** of) : `1e${of}`);

const rate = (value) => (value === null || value === undefined ? "" : value.toFixed(2));

const COLUMNS = [
  ["kernel", ({ kernel }) => shown(kernel)], ["dispatches", ({ dispatches }) => count(dispatches)], ["flop/byte", (of) => rate(of.flops_per_byte)],
  ["GFLOP/s", ({ roofline }) => rate(roofline?.gflops_per_s)], ["GB/s", ({ roofline }) => rate(roofline?.gbytes_per_s)],
  ["% of the roof", ({ roofline }) => roofline?.roof_percent?.toFixed(1) ?? ""], ["bound by", ({ roofline }) => roofline?.bound ?? ""],
  ["times of", ({ roofline }) => (roofline ? `${roofline.time_of} dispatches` : "not known")],
];

/** What people have said of their GPU, for all kernels. */
const said = {};

let isStyled = false;

/** Shows the roofline behind the code of the kernel with this number of its name. */
export function show(code, name, source, signal) {
  if (!isStyled) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    document.adoptedStyleSheets.push(sheet);
    isStyled = true;
  }
  const roofline = new RooflineChart(code.server, name, source, signal);
  code.root.append(roofline.root);
  return roofline.ask();
}

class RooflineChart {
  constructor(server, name, source, signal) {
    Object.assign(this, { server, name, source });
    signal.addEventListener("abort", () => this.asking.abort());
    const fields = PEAKS.map(([key, words, example]) => make("label", {}, `${words} `, make("input", {
      type: "number", min: "0", step: "any", placeholder: example, "data-peak": key, value: said[key],
      change: ({ target }) => {
        said[key] = target.value;
        this.ask();
      },
    })));
    this.body = make("div", { "aria-live": "polite" });
    this.root = make("section", { class: "roofline" }, make("h2", {}, "Roofline of the counted kernels"), make("div", { class: "controls" }, fields), this.body);
  }

  async ask() {
    this.asking?.abort();
    this.asking = new AbortController();
    const known = Object.entries(said).filter(([, value]) => value !== "");
    try {
      const found = await this.server.roofline({ name: this.name, source: this.source, ...Object.fromEntries(known) }, this.asking.signal);
      this.put(found, Object.fromEntries(known.map(([key, value]) => [key, Number(value)])));
    } catch (error) {
      if (error.name !== "AbortError") this.body.replaceChildren(make("p", { class: "wrong" }, shown(error.message)));
    }
  }

  put({ kernels, missing, command }, peaks) {
    const placed = placedOf(kernels);
    const asked = kernels.find((kernel) => kernel.is_asked);
    const notes = [];
    if (asked && !placed.includes(asked)) {
      notes.push(asked.roofline && asked.flops_per_byte !== null
        ? "This kernel has no floating-point operations, so the chart has no place for it."
        : "How fast this kernel is is not known: its code object, the times of its dispatches or the counts of these alone are missing.");
    }
    if (!peaks.gflops || !peaks.gbytes) notes.push("The roof is drawn where both peaks of the GPU are known.");
    if (kernels.some(({ roofline }) => roofline?.time_of === "counted")) notes.push("Times of counted dispatches are too long: rpd probe -d 1/10 leaves others uncounted.");
    if (kernels.some((kernel) => kernel.roofline && kernel["lanes_assumed"])) notes.push("Where active work-items were not counted, all of a wavefront are taken for active.");
    this.body.replaceChildren(...[
      placed.length ? this.chart(placed, peaks) : null,
      this.table(kernels),
      ...[...notes, ...missing].map((why) => make("p", { class: "soft" }, shown(why))),
      make("p", {}, make("code", {}, shown(command))),
    ].filter(Boolean));
  }

  chart(placed, peaks) {
    const axes = axesOf(placed, peaks);
    const { left, right, top, bottom, width, height } = CHART;
    const x = (ratio) => left + axes.across.share(ratio) * (width - left - right);
    const y = (gflops) => height - bottom - axes.up.share(gflops) * (height - top - bottom);
    const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Roofline: GFLOP/s by flop/byte; the table has the numbers" });
    for (const at of axes.across.ticks) {
      const place = x(10 ** at);
      drawing.append(svg("path", { class: "line", d: `M ${place} ${top} V ${height - bottom}` }), svg("text", { x: place, y: height - bottom + 15, "text-anchor": "middle" }, power(at)));
    }
    for (const at of axes.up.ticks) {
      const place = y(10 ** at);
      drawing.append(svg("path", { class: "line", d: `M ${left} ${place} H ${width - right}` }), svg("text", { x: left - 6, y: place + 4, "text-anchor": "end" }, power(at)));
    }
    drawing.append(svg("text", { x: left, y: 12, "text-anchor": "end" }, "GFLOP/s"), svg("text", { x: width - right, y: height - 6, "text-anchor": "end" }, "flop/byte"));
    const roof = roofOf(peaks, axes);
    if (roof.length) drawing.append(svg("path", { class: "roof", d: roof.map(([ratio, gflops], at) => `${at ? "L" : "M"} ${x(ratio)} ${y(gflops)}`).join(" ") }));
    // The one that was asked for is in front, and never told by colour alone.
    for (const kernel of [...placed].sort((one, other) => Number(one.is_asked) - Number(other.is_asked))) {
      const { roofline, flops_per_byte: ratio, is_asked: isAsked } = kernel;
      drawing.append(svg("circle", { class: isAsked ? "asked" : "other", cx: x(ratio), cy: y(roofline.gflops_per_s), r: isAsked ? 6 : 4 },
        svg("title", {}, `${shown(kernel.kernel)}: ${rate(ratio)} flop/byte, ${rate(roofline.gflops_per_s)} GFLOP/s`)));
    }
    const mark = (name, r) => svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("circle", { class: name, cx: 7, cy: 7, r }));
    const others = placed.some((kernel) => !kernel.is_asked) ? make("span", {}, mark("other", 4), "other counted kernels") : null;
    const own = placed.some((kernel) => kernel.is_asked) ? make("span", {}, mark("asked", 6), "this kernel") : null;
    return make("div", {}, drawing, make("p", { class: "legend" }, own, others));
  }

  table(kernels) {
    const row = (kernel) => make("tr", { "aria-current": kernel.is_asked ? "true" : undefined }, COLUMNS.map(([, value], at) => make("td", { class: at && at < 6 ? "number" : undefined }, value(kernel))));
    const rows = [...kernels.filter(({ is_asked: isAsked }) => isAsked), ...kernels.filter(({ is_asked: isAsked }) => !isAsked)];
    return make("div", {}, make("table", { class: "grid" },
      make("thead", {}, make("tr", {}, COLUMNS.map(([name], at) => make("th", { scope: "col", class: at && at < 6 ? "number" : undefined }, name)))),
      make("tbody", {}, rows.slice(0, MOST_ROWS).map(row))),
    rows.length > MOST_ROWS ? make("p", { class: "soft" }, `${count(rows.length - MOST_ROWS)} more kernels: the command below shows all.`) : null);
  }
}
