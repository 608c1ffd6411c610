// What stands below the timeline: one event, the table of names, hits of the search, the trace, and the panes that are added. Texts become text
// only, never markup.

import { KIND_WORDS, LOST, STOPPED, colourOf } from "./colour.mjs";
import { figures, folded, make } from "./elements.mjs";
import { bytes, count, duration, exact, number, plural, shown } from "./format.mjs";
import { Marks } from "./marks.mjs";
import { Names } from "./names.mjs";

function pairsTable(pairs) {
  return make("table", {}, pairs.map(([name, value]) =>
    make("tr", {}, make("th", { scope: "row" }, shown(name)), make("td", {}, folded(shown(value))))));
}

/** Panes from left to right, those that not every page has among them. */
const ORDER = ["details", "selection", "compare", "flame", "reports", "sql", "code", "search", "marks", "trace"];

export class Panes {
  /** @param {import("./timeline.mjs").Timeline} timeline */
  constructor(timeline, { select, tab, measure, all, next, marks, asRows, explain }) {
    this.timeline = timeline;
    this.select = select;
    this.asRows = asRows;
    this.explain = explain;
    /** What is done when a pane is looked at, by its key. @type {Map<string, () => void>} */
    this.looked = new Map();
    this.onTab = tab;
    this.tab = "details";
    this.names = new Names(this, { measure, all, next });
    this.marks = new Marks(timeline, marks);
    this.contents = { details: this.nothing(), selection: this.names.root, search: null, marks: this.marks.root, trace: this.trace() };
    this.pane = document.getElementById("pane");
    this.buttons = new Map();
    const tabs = document.getElementById("tabs");
    for (const [key, name] of [["details", "Event"], ["selection", "Table"], ["search", "Search"], ["marks", "Marks"], ["trace", "Trace"]]) this.button(key, name);
    tabs.addEventListener("keydown", (event) => {
      const keys = ORDER.filter((key) => this.buttons.has(key));
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      event.stopPropagation();
      this.show(keys[(keys.indexOf(this.tab) + move + keys.length) % keys.length]);
      this.buttons.get(this.tab).focus();
    });
    this.show("details");
  }

  button(key, name) {
    const button = make("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": "pane", click: () => this.show(key) }, name);
    const behind = ORDER.slice(ORDER.indexOf(key)).map((other) => this.buttons.get(other)).find(Boolean);
    document.getElementById("tabs").insertBefore(button, behind ?? null);
    this.buttons.set(key, button);
  }

  /** Adds a pane. @param {() => void} looked done whenever it is looked at */
  add(key, name, content, looked) {
    this.contents[key] = content;
    this.looked.set(key, looked);
    this.button(key, name);
  }

  show(tab) {
    if (!this.buttons.has(tab)) return;
    this.tab = tab;
    for (const [key, button] of this.buttons) {
      button.setAttribute("aria-selected", String(key === tab));
      button.tabIndex = key === tab ? 0 : -1;
    }
    this.pane.setAttribute("aria-labelledby", `tab-${tab}`);
    this.pane.replaceChildren(this.contents[tab] ?? this.empty());
    this.looked.get(tab)?.();
    this.onTab(tab);
  }

  put(tab, content) {
    this.contents[tab] = content;
    if (this.tab === tab) this.pane.replaceChildren(content ?? this.empty());
  }

  nothing() {
    return make("p", { class: "soft" }, "Select an event: click on it, or go through the row with , and .");
  }

  empty() {
    return make("p", { class: "soft" }, "Type into the search field: words of names, re:PATTERN, dur>1ms, dur<10us, gpu:0, arg:TEXT for what arguments of calls have.");
  }

  chip(name) {
    const chip = make("span", { class: "chip" });
    chip.style.background = colourOf(this.timeline.names[name] ?? "", this.timeline.kinds[name] ?? 4, this.timeline.dark.matches).fill
      .join().replace(/.*/s, (rgb) => `rgb(${rgb})`);
    return chip;
  }

  link(hit, text) {
    return make("button", { type: "button", class: "link", click: () => this.select(hit) }, this.chip(hit.name), shown(text));
  }

  /** Shows all that is known of an event. */
  details(event) {
    const { timeline } = this;
    const line = timeline.lineOf.get(event.row);
    const place = line ? [line.group.label, line.track?.label ?? ""].filter(Boolean).join(" · ") : "";
    const { file } = timeline.trace.traces[event.source].facts;
    const table = event.is_op ? "rocpd_op" : "rocpd_api";
    const { under } = event;
    const where = (hit) => (under ? `at ${exact(hit.start_ns)}` : this.distance(event, hit));
    const links = event.links.map((hit) =>
      make("li", {}, this.link(hit, timeline.names[hit.name] ?? "event"), make("span", { class: "soft" }, ` ${duration(hit.duration_ns)}, ${where(hit)}`)));
    const more = event.all_links - event.links.length;
    const list = links.length
      ? make("section", {}, make("h2", {}, event.is_op ? "Caused by" : `Caused ${count(event.all_links)}`),
          under ? pairsTable([["first begins", exact(under.start_ns)], ["last ends", exact(under.end_ns)], ["sum", duration(under.total_ns)]]) : null,
          make("ul", { class: "links" }, links, more > 0 ? make("li", { class: "soft" }, `and ${count(more)} more`) : null))
      : null;
    this.put("details", make("div", {},
      make("div", { class: "title" }, this.chip(event.name), folded(shown(event.text))),
      figures([
        ["duration", duration(event.duration_ns)],
        ["begin", exact(event.start_ns)],
        ["on the host's clock", `${event.begin_ns} ns`],
        ["kind", event.kind],
        ["where", shown(place)],
      ]),
      make("div", { class: "columns" },
        list,
        event.memory ? this.memory(event.memory) : null,
        event.touched.length ? this.touched(event.touched) : null,
        event.arguments.length ? make("section", {}, make("h2", {}, "Arguments"), pairsTable(event.arguments)) : null,
        event.rows.map((row) => make("section", {}, make("h2", {}, row.table), pairsTable(row.cells))),
        this.buttons.has("code") && ["kernel", "collective"].includes(event.kind)
          ? make("section", {}, make("h2", {}, "Code"), make("button", { type: "button", click: () => this.show("code") }, "Registers, instructions, blocks")) : null,
        make("section", {}, make("h2", {}, "The same in a terminal"),
          make("code", {}, shown(`rpd sql ${/^[\w.-]+$/.test(file) ? file : "FILE"} 'select * from ${table} where id = ${event.id}'`))))));
  }

  /** How far an operation is from its call. */
  distance(event, hit) {
    const [call, op] = event.is_op ? [hit, event] : [event, hit];
    const ns = op.start_ns - call.start_ns;
    return ns >= 0 ? `${duration(ns)} from call to start` : `starts ${duration(-ns)} before the call`;
  }

  /** Adds to the details of an event what it waited for, and what waited for it. */
  waits(event, { waited_for, waited_by, all_waited_by }) {
    const { names } = this.timeline;
    const end = (one) => one.start_ns + one.duration_ns;
    const when = (ns, what) => (ns === 0 ? `as ${what}` : `${duration(Math.abs(ns))} ${ns > 0 ? "after" : "before"} ${what}`);
    const item = (of, text) => make("li", {}, this.link(of, names[of.name] ?? "event"), make("span", { class: "soft" }, ` ${text}${of.through ? ", by" : ""}`),
      of.through ? [" ", this.link(of.through, names[of.through.name] ?? "call")] : null);
    const list = (head, items, more = 0) => (items.length
      ? make("section", { class: "waits" }, make("h2", {}, head), make("ul", { class: "links" }, items, more > 0 ? make("li", { class: "soft" }, `and ${count(more)} more`) : null))
      : null);
    const sections = [
      list("Waited for", waited_for.map((of) => item(of, `ended ${when(end(of) - event.start_ns, "this began")}`))),
      list(`Waited for by ${count(all_waited_by)}`, waited_by.map((of) => item(of, `begins ${when(of.start_ns - end(event), "this ended")}`)), all_waited_by - waited_by.length),
    ];
    const columns = this.contents.details.querySelector(".columns");
    const behind = columns?.children[event.links.length ? 1 : 0] ?? null;
    for (const section of sections.filter(Boolean)) columns?.insertBefore(section, behind);
  }

  /** Shows a time in which a process was not recorded, or records of it were lost. */
  recording(span) {
    const { timeline } = this;
    const group = timeline.trace.groups.find((one) => one.key === span.group);
    const isLost = span.what === "lost";
    const words = isLost
      ? span.is_vague
        ? "The trace does not say when these were lost: the whole time of the session is shown."
        : "These records are not in the trace: calls and operations lack between the others."
      : "Recording was stopped, or had not begun. What the process did meanwhile is not in the trace; ranges that were open begin where recording goes on.";
    return make("div", {},
      make("p", { class: "title" }, this.kindChip(isLost ? LOST : STOPPED), shown(span.text)),
      figures([["duration", duration(span.duration_ns)], ["begin", exact(span.start_ns)], ["process", shown(group?.label ?? "")], ["session", String(span.session)]]),
      make("p", { class: "soft" }, words),
      isLost ? make("section", {}, make("h2", {}, "Records by cause"), pairsTable(span.lost.map(([cause, records]) => [cause, count(records)]))) : null);
  }

  /** The times in which something is missing, which lead there. */
  spans() {
    const { recording = [] } = this.timeline.trace;
    if (!recording.length) return null;
    const items = recording.slice(0, 200).map((span) => make("li", {},
      make("button", { type: "button", class: "link", click: () => this.explain(span) }, this.kindChip(span.what === "lost" ? LOST : STOPPED), shown(span.text)),
      make("span", { class: "soft" }, ` at ${exact(span.start_ns)}, ${duration(span.duration_ns)}`)));
    const more = recording.length - items.length;
    return make("section", {}, make("h2", {}, "Not recorded"),
      make("ul", { class: "links" }, items, more ? make("li", { class: "soft" }, `and ${count(more)} more`) : null));
  }

  kindChip(kind) {
    const chip = make("span", { class: "chip" });
    chip.style.background = `rgb(${colourOf(KIND_WORDS[kind], kind, this.timeline.dark.matches).fill.join()})`;
    return chip;
  }

  failed(tab, words) {
    this.put(tab, make("p", { class: "wrong" }, shown(words)));
  }

  /** Shows what a search found. */
  search(found) {
    const { timeline } = this;
    const rows = found.hits.slice(0, 500).map((hit) =>
      make("tr", {},
        make("td", {}, this.link(hit, timeline.names[hit.name] ?? "")),
        make("td", { class: "number" }, exact(hit.start_ns)),
        make("td", { class: "number" }, duration(hit.duration_ns)),
        make("td", {}, shown(this.place(hit)))));
    this.put("search", make("div", {},
      make("p", { class: "soft" }, `${plural(found.count, "event", "events")} of ${plural(found.names.length, "name", "names")}${found.count > rows.length ? `; the first ${count(rows.length)} by start` : ""}`),
      found.hits.length ? make("p", {}, make("button", {
        type: "button",
        click: () => this.asRows(found),
      }, found.count > found.hits.length ? `The first ${count(found.hits.length)} as rows` : "As rows")) : null,
      make("table", { class: "grid" },
        make("thead", {}, make("tr", {}, ["name", "begin", "duration", "where"].map((name, at) =>
          make("th", { scope: "col", class: at === 1 || at === 2 ? "number" : undefined }, name)))),
        make("tbody", {}, rows))));
  }

  place(hit) {
    const line = this.timeline.lineOf.get(hit.row);
    return line ? `${line.group.label} ${line.track?.label ?? ""}` : "";
  }

  trace() {
    const { facts, groups } = this.timeline.trace;
    const tracks = groups.flatMap((group) => [
      ...group.tracks.map((track) => [`${group.label} · ${track.label}`, plural(track.events, "event", "events")]),
      ...group.counters.map((counter) => [`${group.label} · ${counter.label}`, `${plural(counter.values, "value", "values")}, ${number(counter.least)} to ${number(counter.greatest)}`]),
    ]);
    return make("div", {},
      figures([
        ["length", duration(facts.span_ns)], ["calls and markers", count(facts.calls)], ["operations", count(facts.ops)],
        ["processes", count(facts.sessions || groups.filter((group) => !group.is_gpu && group.tracks.length).length)], ["file", bytes(facts.bytes)], ["schema", facts.schema],
      ]),
      make("div", { id: "sessions" }),
      make("div", { class: "columns" },
        make("section", {}, make("h2", {}, "Where"), pairsTable(tracks)),
        this.spans(),
        make("section", {}, make("h2", {}, "Colours"), KIND_WORDS.map((word, kind) => make("div", {}, this.kindChip(kind), word)), make("p", { class: "soft" }, "Each name has a hue of its kind. The fainter, the more of the time is idle."))));
  }

  /** What a call allocated, until when, and what was copied to and from it. */
  memory({ address, bytes: size, until_ns, freed_by, uses, all_uses }) {
    const { names } = this.timeline;
    return make("section", {}, make("h2", {}, "Allocated"),
      pairsTable([["size", bytes(size)], ["address", address], ["until", until_ns === null ? "never freed" : exact(until_ns)]]),
      freed_by ? make("p", {}, "freed by ", this.link(freed_by, names[freed_by.name] ?? "call")) : null,
      uses.length ? make("div", {}, make("h2", {}, `Copied and filled by ${count(all_uses)}`), make("ul", { class: "links" }, uses.map((hit) =>
        make("li", {}, this.link(hit, names[hit.name] ?? "call"), make("span", { class: "soft" }, ` at ${exact(hit.start_ns)}`))))) : null);
  }

  /** The allocations that a call copies to or from, or fills. */
  touched(touched) {
    return make("section", {}, make("h2", {}, "Memory"), make("ul", { class: "links" }, touched.map((of) =>
      make("li", {}, make("span", { class: "soft" }, `${shown(of.argument)} `), this.link(of, this.timeline.names[of.name] ?? "call"), make("span", { class: "soft" }, ` ${bytes(of.bytes)}`)))));
  }
}
