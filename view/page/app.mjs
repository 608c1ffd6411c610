// The page: reads the trace, wires what people do to the timeline and the panes, keeps the address.

import { Code } from "./code.mjs";
import { Console } from "./console.mjs";
import { askTime, showKeys } from "./dialogs.mjs";
import { make } from "./elements.mjs";
import { Flame } from "./flame.mjs";
import { bytes, count, duration, exact, plural, shown, valueOf } from "./format.mjs";
import { Growth } from "./growth.mjs";
import { health } from "./health.mjs";
import { action } from "./keys.mjs";
import { firstClosed } from "./layout.mjs";
import { Panes } from "./panes.mjs";
import { Reports } from "./reports.mjs";
import { Rows } from "./rows.mjs";
import { Failure, server } from "./server.mjs";
import { START, fromFragment, toFragment } from "./state.mjs";
import { Timeline, element } from "./timeline.mjs";

const REST_MS = 120;

/** What reads the file follows the view when that has rested so long. */
const FOLLOW_MS = 600;

/** A statement that reads the file would hold its recorder up. */
const FOLLOWED = "A trace that is being recorded is not read for this, because its recorder would have to wait: start rpd view without --live.";

/** Rows from this number on are worked out on request: their events have times of their own. */
const WORKED_FROM = 2 ** 30;
const ALIVE_MS = 60_000;

/** Changes of the view that follow each other faster are one step to go back by. */
const STEP_MS = 700;

/** Says something over the timeline. */
function message(text, isWrong = false) {
  const place = element("message");
  place.textContent = text;
  place.hidden = !text;
  place.classList.toggle("wrong", isWrong);
}

/** Says what went wrong. */
function failed(error) {
  if (error.name === "AbortError") return;
  message(error instanceof Failure ? shown(error.message) : `The page failed: ${shown(String(error.message ?? error))}`, true);
  if (!(error instanceof Failure)) throw error;
}

/** An event by what the file calls it: these stay when others come. */
const which = ({ is_op, id, source }) => ({ [is_op ? "op" : "call"]: id, ...(source ? { source } : {}) });
const keyOf = ({ is_op, id, source }) => `${source ? "b." : ""}${is_op ? "op" : "call"}:${id}`;

function ofKey(key) {
  const [, second, kind, id] = key.match(/^(b\.)?(op|call):(.*)$/);
  return { [kind]: id, ...(second ? { source: 1 } : {}) };
}

/** Says what the trace is. */
function tell(trace) {
  const { facts } = trace;
  const files = trace.traces.map((one) => shown(one.facts.file)).join(" · ");
  document.title = `${files} · rpd view`;
  element("file").textContent = files;
  const sum = (what) => trace.traces.reduce((all, one) => all + one.facts[what], 0);
  element("facts").textContent = `${duration(facts.span_ns)} · ${plural(sum("calls"), "call or marker", "calls and markers")} · ${plural(sum("ops"), "operation", "operations")}`;
  const wrong = health(trace, server.readsFile && !trace.is_live);
  element("health").replaceChildren(...wrong.map((text) => make("li", {}, text)));
  element("health").hidden = wrong.length === 0;
}

async function read() {
  for (;;) {
    const trace = await server.trace();
    if (trace.is_read) return trace;
    message(trace.of ? `Reading the trace: ${count(trace.rows)} of ${count(trace.of)} rows` : "Reading the trace");
    await new Promise((done) => setTimeout(done, 150));
  }
}

class App {
  /** @param Compare the class of the pane that compares, where there are several traces */
  constructor(trace, Compare) {
    this.trace = trace;
    server.version = trace.version;
    this.timeline = new Timeline(trace, server, failed);
    this.panes = new Panes(this.timeline, {
      asRows: (found) => this.rows.add(...this.hitRows(found)),
      explain: (span) => this.explain(span, true),
      select: (hit) => this.select({ event: hit.event }, true),
      tab: () => {
        this.keep();
        this.timeline.redraw();
      },
      measure: () => this.measure(),
      all: () => this.allNames(),
      next: (name, isBack) => this.next(name, isBack),
      marks: {
        go: (at) => this.move((view) => view.set(at - view.length / 2, at + view.length / 2), true),
        changed: (isStep) => {
          this.timeline.redraw();
          this.keep(isStep);
        },
        leave: () => element("plot").focus(),
      },
    });
    this.compare = Compare ? new Compare(this) : null;
    if (this.compare) {
      this.panes.add("compare", "Compare", this.compare.root, () => this.compare.measure());
      this.firstShift = this.compare.shift;
    }
    // A page that carries its trace has no file, and one that is recorded is left alone.
    const hasRows = server.readsFile && !trace.is_live;
    this.rows = new Rows(this.timeline, server, { isOffered: hasRows, changed: () => this.keep(true), failed, say: (text) => this.say(text) });
    if (server.readsFile) this.addPanes();
    this.timeline.drawn = () => {
      this.follow();
      this.hoverAgain();
    };
    this.before = [];
    this.behind = [];
    this.search = null;
    this.timeline.changed = () => this.keep();
    this.isReady = false;
  }

  /** The panes that ask the server for more than the timeline shows. */
  addPanes() {
    const { timeline, panes, rows } = this;
    if (this.trace.is_live) {
      for (const [key, name] of [["flame", "Calls"], ["reports", "Reports"], ["sql", "SQL"], ["code", "Code"]]) {
        panes.add(key, name, make("p", { class: "soft" }, FOLLOWED), () => {});
      }
      return;
    }
    const time = () => {
      if (timeline.range) return { time: timeline.range, isSelected: true };
      const { from, to } = timeline.view;
      const isWhole = from <= 0 && to >= this.trace.facts.span_ns;
      return { time: isWhole ? null : [Math.max(0, Math.floor(from)), Math.ceil(to)], isSelected: false };
    };
    const go = (from, to) => this.move((view) => {
      const room = Math.max((to - from) * 0.5, 50);
      timeline.choose(to > from ? [Math.round(from), Math.round(to)] : null);
      view.set(from - room, to + room);
    }, true);
    const find = (text) => {
      element("query").value = text;
      this.find(text);
    };
    const select = (which) => this.select(which);
    const derive = (what) => rows.want([...new Set([...rows.asked, what])]).then(() => this.keep(true), failed);
    const { traces } = this.trace;
    this.flame = new Flame(server, { traces, time, find, isDark: () => timeline.dark.matches });
    this.reports = new Reports(server, { traces, time, go, select, find, derive });
    this.console = new Console(server, { traces, asRows: (...group) => rows.add(...group), renewed: (key, ...group) => timeline.own.has(key) && timeline.makeOwn(key, ...group), select: (event) => this.select({ event }), go, changed: () => this.keep() });
    this.code = new Code(server);
    panes.add("flame", "Calls", this.flame.root, () => this.flame.shown());
    panes.add("reports", "Reports", this.reports.root, () => this.reports.shown());
    panes.add("sql", "SQL", this.console.root, () => this.console.shown().catch(failed));
    panes.add("code", "Code", this.code.root, () => this.code.shown());
    panes.looked.set("trace", () => this.sessions());
  }

  /** Adds to the facts of the trace who recorded what, and what was lost. */
  async sessions() {
    if (this.isSaid) return;
    this.isSaid = true;
    const place = element("sessions");
    const { traces } = this.trace;
    try {
      const said = await Promise.all(traces.map(async ({ facts }, source) => {
        const { report } = await server.report("sessions", null, source);
        const tables = this.reports.sessions(report).filter(Boolean);
        return traces.length > 1 ? [make("h2", {}, shown(facts.file)), ...tables] : tables;
      }));
      place.replaceChildren(...said.flat());
    } catch (error) {
      if (error.name === "AbortError") this.isSaid = false;
      else place.replaceChildren(make("p", { class: "wrong" }, shown(error.message)));
    }
  }

  say(text) {
    element("live").textContent = shown(text);
  }

  async start() {
    this.timeline.closed = new Set(firstClosed(this.trace.groups));
    this.pointer();
    this.keyboard();
    this.controls();
    this.growth = new Growth(this, failed);
    await this.apply();
    this.isReady = true;
    this.growth.run();
    addEventListener("popstate", () => this.apply());
    addEventListener("hashchange", () => this.apply());
    setInterval(() => server.alive().catch(failed), ALIVE_MS);
    this.empty();
  }

  /** Puts all to what the address says. */
  async apply() {
    const fragment = location.hash;
    if (this.isReady && fragment === this.kept) return;
    const state = fromFragment(fragment);
    this.applying = true;
    const { timeline } = this;
    if (this.compare && (state.shift ?? this.firstShift) !== this.compare.shift) {
      await this.compare.ordered({ by: "hand", ns: state.shift ?? this.firstShift });
    }
    if (state.closed) timeline.closed = new Set(state.closed);
    this.rows.apply(state);
    timeline.cursors = [...state.cursors];
    timeline.arrange();
    if (state.t) timeline.view.set(...state.t);
    else timeline.view.whole();
    timeline.choose(state.range, state.parts);
    timeline.marks = state.marks.map((mark) => [...mark]);
    this.panes.marks.show();
    element("query").value = state.q;
    await this.find(state.q, false);
    if (state.range) this.measure();
    else this.measured = null;
    if (state.sel) {
      await this.select(ofKey(state.sel), false);
      if (!state.t && !state.isAll && timeline.selected) timeline.show(timeline.selected, true);
    } else this.nothing();
    if (state.ask && state.ask !== this.console?.question) this.console?.ask(state.ask, state.askOf);
    this.panes.show(state.tab);
    this.applying = false;
    this.kept = fragment;
    timeline.redraw();
  }

  /** Says where there is nothing to be seen. */
  empty() {
    const nothing = this.trace.is_live ? "Nothing is recorded yet." : "The trace holds no calls and no operations.";
    message(this.trace.groups.length ? "" : nothing);
  }

  /** Another reading of the trace is shown: finds again what is selected and what was searched for. */
  renewed(trace, moved) {
    this.trace = trace;
    for (const views of [this.before, this.behind]) views.forEach((times) => times.forEach((at, place) => (times[place] = at + moved)));
    tell(trace);
    this.empty();
    const { timeline } = this;
    this.panes.put("trace", this.panes.trace());
    if (timeline.selected) this.select(which(timeline.selected), false, false, false);
    if (this.search) this.find(element("query").value, false).then(() => this.search && timeline.own.has("x.hits") && timeline.makeOwn(...this.hitRows(this.search.found)));
    this.measured = null;
    this.hovered = null;
    if (this.console) {
      this.isSaid = false;
      this.rows.want(this.rows.asked).catch(failed);
      this.console.again().catch(failed);
      for (const pane of [this.flame, this.reports]) pane.asked = null;
    }
    this.panes.looked.get(this.panes.tab)?.();
    timeline.redraw();
  }

  /** What is looked at. */
  state() {
    const { timeline } = this;
    const { view, selected } = timeline;
    const whole = view.from <= 0 && view.to >= this.trace.facts.span_ns;
    const first = firstClosed(this.trace.groups);
    const closed = [...timeline.closed];
    const isFirst = closed.length === first.length && first.every((key) => timeline.closed.has(key));
    return {
      ...START,
      t: whole ? null : [view.from, view.to],
      // Without an event there is nothing else that an address could lead to.
      isAll: whole && selected !== null,
      sel: selected ? keyOf(selected) : null,
      range: timeline.range,
      parts: timeline.parts,
      q: element("query").value.trim(),
      closed: isFirst ? null : closed,
      marks: timeline.marks,
      shift: this.compare && this.compare.shift !== this.firstShift ? this.compare.shift : null,
      cursors: timeline.cursors,
      ask: this.console?.question ?? "",
      askOf: this.console?.choice.source ?? 0,
      ...this.rows.state(),
      tab: this.panes?.tab ?? START.tab,
    };
  }

  /** Keeps what is looked at in the address; a step that people may want back is an entry of its own. */
  keep(isStep = false) {
    if (this.applying || !this.isReady) return;
    clearTimeout(this.keeping);
    const write = () => {
      const fragment = toFragment(this.state());
      if (fragment === location.hash) return;
      this.kept = fragment;
      try {
        history[isStep ? "pushState" : "replaceState"](null, "", fragment || location.pathname);
      } catch (error) {
        // In the frame of a notebook a page has no address of its own.
        if (error.name !== "SecurityError") throw error;
      }
    };
    if (isStep) write();
    else this.keeping = setTimeout(write, 250);
  }

  /** Changes the times that are looked at; what is a jump can be taken back. */
  move(change, isJump = false) {
    const { view } = this.timeline;
    const now = performance.now();
    if (isJump || now - (this.moved ?? -STEP_MS) > STEP_MS) this.remember();
    this.moved = isJump ? -STEP_MS : now;
    change(view);
    this.growth?.moved();
    this.timeline.redraw();
    this.keep(isJump);
  }

  /** Takes note of the view, to come back to. */
  remember() {
    const { view } = this.timeline;
    this.before.push([view.from, view.to]);
    this.behind = [];
  }

  nothing() {
    const { timeline } = this;
    this.code?.want(null);
    timeline.selected = null;
    timeline.links = [];
    timeline.waits = null;
    this.panes.put("details", this.panes.nothing());
    timeline.redrawOverlay();
  }

  /** Selects an event, by its number or its id. */
  async select(which, isStep = true, isFit = false, isShown = true) {
    this.selecting?.abort();
    this.selecting = new AbortController();
    const { timeline } = this;
    try {
      const event = await server.event(which, this.selecting.signal);
      const others = [...event.links, ...(event.memory?.uses ?? []), ...(event.memory?.freed_by ? [event.memory.freed_by] : []), ...event.touched];
      await timeline.name([{ name: [event.name, ...others.map((hit) => hit.name)] }]);
      timeline.selected = event;
      timeline.links = event.links;
      timeline.waits = null;
      if (isShown) timeline.show(event, isFit);
      else timeline.redrawOverlay();
      this.panes.details(event);
      this.code?.want(event.is_op ? event.name : null, event.text, event.source);
      if (isStep && ["marks", "trace"].includes(this.panes.tab)) this.panes.show("details");
      const where = timeline.lineOf.get(event.row);
      this.say(`${where ? `${where.group.label} ${where.track?.label ?? ""}: ` : ""}${event.text}, begins at ${exact(event.start_ns)}, takes ${duration(event.duration_ns)}`);
      if (this.panes.tab === "code") this.code.shown();
      if (isStep) this.keep(true);
      await this.dependencies(event, this.selecting.signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof Failure)) throw error;
      this.panes.failed("details", error.message);
      this.say(error.message);
    }
  }

  /** Adds to the selected event what it waited for, and what waited for it; they are worked out of all calls the first time. */
  async dependencies(event, signal) {
    if (!server.readsFile || this.trace.is_live) return;
    const { timeline } = this;
    const waits = await server.waits(event.event, signal);
    const all = [...waits.waited_for, ...waits.waited_by];
    await timeline.name([{ name: all.flatMap((of) => [of, of.through]).filter(Boolean).map((hit) => hit.name) }]);
    if (!all.length || timeline.selected !== event) return;
    timeline.waits = waits;
    this.panes.waits(event, waits);
    timeline.redrawOverlay();
  }

  /** Shows a time in which a process was not recorded, or not whole. */
  explain(span, isShown = false) {
    this.nothing();
    this.panes.put("details", this.panes.recording(span));
    if (["marks", "trace"].includes(this.panes.tab)) this.panes.show("details");
    if (isShown) {
      const room = Math.max(span.duration_ns * 0.5, 50);
      this.move((view) => view.set(span.start_ns - room, span.start_ns + span.duration_ns + room), true);
    }
    this.say(`${span.text}, begins at ${exact(span.start_ns)}, takes ${duration(span.duration_ns)}`);
  }

  /** The event before or behind the selected one in its row. */
  step(direction) {
    const { timeline } = this;
    const { selected } = timeline;
    if (selected) return this.select({ event: selected.event, move: direction });
    const first = timeline.onScreen().find((line) => line.sort === "row" && line.row >= 0);
    if (first) this.select({ row: first.row });
  }

  /** The selected time, otherwise the one that is seen; and its rows, where they are not all. */
  get measuredPart() {
    const { timeline } = this;
    if (timeline.range) return [timeline.range, timeline.chosenRows];
    const { from, to } = timeline.view;
    return [[Math.max(0, Math.floor(from)), Math.min(Math.ceil(to), this.trace.facts.span_ns + 1)], null];
  }

  /** Numbers about the selected time, or the one that is seen. */
  async measure() {
    const { timeline, panes: { names } } = this;
    const [time, rows] = this.measuredPart;
    const isSelected = timeline.range !== null;
    this.measured = `${this.measuredPart}`;
    this.measuring?.abort();
    this.measuring = new AbortController();
    const { signal } = this.measuring;
    try {
      const found = await server.statistics(time, rows, names.asked, signal);
      await timeline.name([{ name: found.names.map((of) => of.name) }]);
      signal.throwIfAborted();
      names.show(found, time, isSelected);
      if (names.isEach) {
        const { sort, q, source } = names.asked;
        const events = await server.events(time, rows, { sort, q, source, ...names.listed }, signal);
        await timeline.name([{ name: events.name }]);
        signal.throwIfAborted();
        names.showEach(events, time, isSelected);
      }
      if (isSelected) this.say(`${plural(found.count, "event", "events")} selected, ${duration(found.busy_ns)} busy`);
    } catch (error) {
      if (error.name !== "AbortError") names.failed(error.message);
    }
  }

  /** The table by name with all its names, where the one that is shown has the first ones. */
  async allNames() {
    const [time, rows] = this.measuredPart;
    const found = await server.statistics(time, rows, { ...this.panes.names.asked, all: true });
    await this.timeline.name([{ name: found.names.map((of) => of.name) }]);
    return found;
  }

  /** Lets the table follow what is seen, while it is seen itself. */
  follow() {
    if (["flame", "reports"].includes(this.panes?.tab)) {
      clearTimeout(this.following);
      this.following = setTimeout(() => this.panes.looked.get(this.panes.tab)?.(), FOLLOW_MS);
    }
    if (this.panes?.tab !== "selection" || this.measured === `${this.measuredPart}`) return;
    clearTimeout(this.following);
    this.following = setTimeout(() => this.measure(), REST_MS);
  }

  /** Goes to the next event of a name, or the one before. */
  async next(name, isBack) {
    const [time, rows] = this.measuredPart;
    try {
      const { event, place, of } = await server.next(time, rows, { name, source: this.panes.names.asked.source, ...this.whence(isBack) });
      await this.select({ event });
      this.say(`${count(place)} of ${count(of)}: ${element("live").textContent}`);
    } catch (error) {
      failed(error);
    }
  }

  selectTime(from, to, parts) {
    const { timeline } = this;
    const begin = Math.round(Math.min(from, to));
    timeline.choose([begin, Math.max(begin + 1, Math.round(Math.max(from, to)))], parts);
    // Where all chosen rows are of one trace, the table is about that.
    const sources = new Set(parts?.map(([key]) => Number(key.startsWith("b."))));
    if (sources.size === 1) this.panes.names.pick([...sources][0]);
    timeline.redraw();
    if (this.panes.tab === "compare") this.compare.measure();
    else this.panes.show("selection");
    this.measure();
    this.keep(true);
  }

  /** The hits of a search as rows of the page's own. */
  hitRows({ hits }) {
    const { names } = this.timeline;
    const events = hits.map(({ event, start_ns, duration_ns, name }) => ({ event, start: start_ns, length: duration_ns, name: names[name] ?? "" }));
    return ["x.hits", "Hits", element("query").value, events];
  }

  /** Looks for events by their names. */
  async find(text, isShown = true) {
    const { timeline } = this;
    const hits = element("hits");
    this.finding?.abort();
    this.finding = new AbortController();
    hits.classList.remove("wrong");
    if (!text.trim()) {
      [this.search, timeline.isHit, timeline.ticks] = [null, null, null];
      hits.textContent = "";
      this.panes.put("search", null);
      timeline.redraw();
      return;
    }
    try {
      const found = await server.search(text, this.finding.signal);
      await timeline.name([{ name: found.hits.map((hit) => hit.name) }]);
      this.search = { found, text };
      const names = new Set(found.names);
      const bits = found.bits === null ? null : Uint8Array.from(atob(found.bits), (char) => char.charCodeAt(0));
      timeline.isHit = (name, event) => names.has(name) && (!bits || (bits[event >> 3] >> (event & 7)) & 1);
      timeline.ticks = found.parts;
      hits.textContent = plural(found.count, "hit", "hits");
      this.panes.search(found);
      if (isShown) this.panes.show("search");
      timeline.redraw();
      this.keep();
    } catch (error) {
      if (error.name === "AbortError") return;
      hits.textContent = shown(error.message);
      hits.classList.add("wrong");
    }
  }

  /** Goes to the next or previous hit, from the selected event or from the begin of what is seen. */
  async hit(isBack) {
    if (!this.search?.found.count) return;
    try {
      const { event, place, of } = await server.hit(this.search.text, { at: Math.max(0, Math.floor(this.timeline.view.from)), ...this.whence(isBack) });
      element("hits").textContent = `${count(place)} of ${count(of)}`;
      await this.select({ event });
    } catch (error) {
      failed(error);
    }
  }

  /** From which event the next is looked for. */
  whence(back) {
    const { selected } = this.timeline;
    return { back, ...(selected ? { after: selected.event } : {}) };
  }

  controls() {
    element("whole").addEventListener("click", () => this.move((view) => view.whole(), true));
    element("help").addEventListener("click", showKeys);
    const query = element("query");
    query.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.find(query.value), REST_MS);
    });
    query.addEventListener("keydown", async (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        clearTimeout(this.typing);
        if (!this.search || this.searched !== query.value) await this.find(query.value);
        this.searched = query.value;
        this.hit(event.shiftKey);
      } else if (event.key === "Escape") {
        query.value = "";
        this.find("");
        this.keep();
        element("plot").focus();
      }
    });
    element("search").addEventListener("submit", (event) => event.preventDefault());
    const grip = element("grip");
    const height = (change) => {
      const panes = element("panes").clientHeight + change;
      document.documentElement.style.setProperty("--panes", `${Math.min(Math.max(panes, 40), innerHeight - 200)}px`);
    };
    grip.addEventListener("pointerdown", (event) => {
      grip.setPointerCapture(event.pointerId);
      grip.onpointermove = (moved) => height(-moved.movementY);
    });
    grip.addEventListener("pointerup", () => (grip.onpointermove = null));
    grip.addEventListener("keydown", (event) => {
      if (event.key === "ArrowUp") height(24);
      if (event.key === "ArrowDown") height(-24);
    });
  }

  pointer() {
    const { timeline } = this;
    const { plot } = timeline;
    const place = (event) => {
      const box = plot.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let drag = null;
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      plot.focus({ preventScroll: true });
      plot.setPointerCapture(event.pointerId);
      const [x, y] = place(event);
      drag = { x, y, lastX: x, lastY: y, isArea: event.shiftKey, isMoved: false, from: timeline.view.at(x, timeline.width) };
    });
    plot.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      timeline.pointer = x;
      timeline.pointerY = y;
      if (!drag) return this.hover(x, y);
      if (!drag.isMoved && Math.hypot(x - drag.x, y - drag.y) < 4) return;
      if (!drag.isMoved && !drag.isArea) this.remember();
      drag.isMoved = this.isDragged = true;
      this.tip(null);
      if (drag.isArea) {
        timeline.area = { x0: drag.x, y0: drag.y, x1: x, y1: y };
        timeline.redrawOverlay();
      } else {
        plot.classList.add("pan");
        timeline.view.pan(((drag.lastX - x) / timeline.width) * timeline.view.length);
        timeline.scrollTo(timeline.scroll + drag.lastY - y);
        this.growth?.moved();
        timeline.redraw();
      }
      [drag.lastX, drag.lastY] = [x, y];
    });
    const end = (event) => {
      if (!drag) return;
      const [x, y] = place(event);
      plot.classList.remove("pan");
      const done = drag;
      drag = null;
      this.isDragged = false;
      timeline.area = null;
      if (!done.isMoved) {
        const { run, line } = timeline.at(x, y);
        const span = run && timeline.recording.span(run);
        // What a counter has there is a value, and no event.
        const event = line?.counter ? timeline.blockAt(x, y)?.event : run?.event;
        if (event >= 0) this.select({ event });
        else if (span) this.explain(span);
        else {
          this.nothing();
          this.keep(true);
        }
      } else if (done.isArea) {
        this.selectTime(done.from, timeline.view.at(x, timeline.width), timeline.partsBetween(done.y, y));
      } else this.keep();
      timeline.redraw();
    };
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", () => {
      drag = null;
      this.isDragged = false;
      timeline.area = null;
      timeline.redraw();
    });
    plot.addEventListener("dblclick", (event) => {
      const { run, line } = timeline.at(...place(event));
      if (run && run.event >= 0 && !line.counter) {
        this.remember();
        this.select({ event: run.event }, true, true);
      }
    });
    plot.addEventListener("pointerleave", () => {
      timeline.pointer = -1;
      this.hover(-1, -1);
    });
    const wheel = (event) => {
      event.preventDefault();
      const [x] = place(event);
      const unit = event.deltaMode === 1 ? 18 : 1;
      if (event.ctrlKey || event.metaKey) {
        this.move((view) => view.zoom(1.002 ** (Math.max(-300, Math.min(300, event.deltaY * unit))), view.at(x, timeline.width)));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = (event.deltaX || event.deltaY) * unit;
        this.move((view) => view.pan((by / timeline.width) * view.length));
      } else timeline.scrollTo(timeline.scroll + event.deltaY * unit);
    };
    plot.addEventListener("wheel", wheel, { passive: false });
    element("gutter").addEventListener("wheel", wheel, { passive: false });
    this.ruler();
    this.overview();
  }

  ruler() {
    const { timeline } = this;
    const ruler = element("ruler");
    let from = null;
    const at = (event) => timeline.view.at(event.clientX - ruler.getBoundingClientRect().left, timeline.width);
    ruler.addEventListener("pointerdown", (event) => {
      ruler.setPointerCapture(event.pointerId);
      from = at(event);
    });
    ruler.addEventListener("pointermove", (event) => {
      if (from === null) return;
      timeline.choose([Math.min(from, at(event)), Math.max(from, at(event))]);
      timeline.redraw();
    });
    ruler.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const to = at(event);
      const isClick = Math.abs(to - from) * timeline.width < 3 * timeline.view.length;
      if (isClick) {
        timeline.choose(null);
        this.measured = null;
        timeline.redraw();
        this.keep(true);
      } else this.selectTime(from, to);
      from = null;
    });
  }

  overview() {
    const { timeline } = this;
    const overview = element("overview");
    let isDragged = false;
    const go = (event) => {
      const box = overview.getBoundingClientRect();
      const middle = ((event.clientX - box.left) / box.width) * this.trace.facts.span_ns;
      this.move((view) => view.set(middle - view.length / 2, middle + view.length / 2));
    };
    overview.addEventListener("pointerdown", (event) => {
      overview.setPointerCapture(event.pointerId);
      this.remember();
      isDragged = true;
      go(event);
    });
    overview.addEventListener("pointermove", (event) => isDragged && go(event));
    overview.addEventListener("pointerup", () => (isDragged = false));
  }

  /** What is under the pointer may be something else when times, rows or what is known of them have changed. */
  hoverAgain() {
    const { pointer: x, pointerY: y } = this.timeline;
    if (x >= 0 && !this.isDragged && this.hovered !== this.placeOf(this.timeline.at(x, y), x, y)) this.hover(x, y);
  }

  /** Tells what is at a place of the plot from what else may be there. */
  placeOf({ line, run }, x, y) {
    const { view, scroll } = this.timeline;
    return [x, y, view.from, view.to, scroll, line?.row, line?.top, run?.event, run?.start_ns, run?.duration_ns].join();
  }

  /** Shows what is under the pointer; its exact times when the pointer rests. */
  hover(x, y) {
    const { timeline } = this;
    const found = x < 0 ? {} : timeline.at(x, y);
    const isRow = found.line?.sort === "row";
    const place = (this.hovered = this.placeOf(found, x, y));
    timeline.hover = found.run && isRow ? found.run : null;
    clearTimeout(this.resting);
    this.tip(timeline.tell(found), x, y);
    timeline.redrawOverlay();
    const block = found.line?.counter?.stack ? timeline.blockAt(x, y) : null;
    if (block) this.tip(this.allocation(block), x, y);
    // An answer is shown where the pointer is still on what was asked for.
    const tip = (lines) => this.hovered === place && this.tip(lines, x, y);
    if (found.line?.sort === "counter") this.resting = setTimeout(() => this.value(found, tip, block), REST_MS);
    if (found.run && isRow && found.run.row >= WORKED_FROM) this.resting = setTimeout(() => this.span(found, tip), REST_MS);
    else if (found.run && isRow && found.run.row >= 0) {
      this.resting = setTimeout(async () => {
        const event = await server.event({ event: found.run.event, brief: true }).catch(() => null);
        if (!event || this.hovered !== place) return;
        timeline.hover = event;
        const [name, many] = timeline.tell(found) ?? [];
        tip([name, [duration(event.duration_ns), `at ${exact(event.start_ns)}`, many].filter(Boolean).join(" · ")]);
        timeline.redrawOverlay();
      }, REST_MS);
    }
  }

  /** What an allocation is, and when. */
  allocation({ name, bytes: size, start_ns, end_ns }) {
    return [`${this.timeline.nameOf(name)} ${bytes(size)}`, `at ${exact(start_ns)}, for ${duration(end_ns - start_ns)}`];
  }

  /** Shows the exact times of what was worked out. */
  async span({ run, when }, tip) {
    const { timeline } = this;
    const near = (2 * timeline.view.length) / Math.max(timeline.width, 1);
    const found = await server.span(run.row, when, near).catch(() => null);
    if (!found) return;
    const size = found.bytes === null ? "" : bytes(found.bytes);
    tip([timeline.nameOf(run.name), [size, duration(found.duration_ns), `at ${exact(found.start_ns)}`].filter(Boolean).join(" · ")]);
  }

  /** Shows the exact value of a counter. */
  async value({ line, when }, tip, block) {
    const { timeline } = this;
    const pixel = timeline.view.length / Math.max(timeline.width, 1);
    const left = Math.floor((when - timeline.view.from) / pixel + 1e-6) * pixel + timeline.view.from;
    const found = await server.value(line.row, when, [left, left + pixel]).catch(() => null);
    if (!found) return;
    const { held, values, least, greatest } = found;
    const many = values > 1 ? `${count(values)} values in this pixel, ${least} to ${greatest}` : "";
    const times = held ? `since ${exact(held.since_ns)}, for ${duration(held.until_ns - held.since_ns)}` : "";
    const value = held && /\.c-(memory|pinned)$/.test(line.counter.key) ? `${valueOf(line.counter, Number(held.value))} (${count(held.value)} bytes)` : held && (line.counter.key.endsWith(".c-bandwidth") ? valueOf(line.counter, Number(held.value)) : held.value);
    const of = block ? this.allocation(block).join(", ") : "";
    tip([`${line.counter.label} ${value ?? "has no value here"}`, [times, many, of].filter(Boolean).join(" · ")]);
  }

  tip(lines, x, y) {
    const tip = element("tip");
    tip.hidden = !lines;
    if (!lines) return;
    const [name, rest] = lines;
    const short = name.length > 220 ? `${name.slice(0, 220)}…` : name;
    tip.replaceChildren(make("b", {}, shown(short)), ...(rest ? [make("div", { class: "soft" }, shown(rest))] : []));
    const { clientWidth, clientHeight } = this.timeline.plot;
    tip.style.left = `${Math.max(4, Math.min(x + 14, clientWidth - tip.offsetWidth - 6))}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > clientHeight ? Math.max(2, y - tip.offsetHeight - 10) : y + 18}px`;
  }

  keyboard() {
    addEventListener("keydown", (event) => {
      const target = event.target;
      if (target.matches?.("input, textarea, select") || document.querySelector("dialog")) return;
      const does = action(event);
      if (!does || !this[`on_${does}`]) return;
      const isArrow = event.key.startsWith("Arrow") || event.key.startsWith("Page") || event.key === "Home";
      if (isArrow && target !== element("plot") && target !== document.body) return;
      event.preventDefault();
      this[`on_${does}`](event.shiftKey ? 4 : 1, event);
    });
  }

  get cursor() {
    const { timeline } = this;
    return timeline.pointer > 0 ? timeline.view.at(timeline.pointer, timeline.width) : timeline.view.from + timeline.view.length / 2;
  }

  on_in(fast) { this.move((view) => view.zoom(0.75 ** fast, this.cursor)); }
  on_out(fast) { this.move((view) => view.zoom(1 / 0.75 ** fast, this.cursor)); }
  on_left(fast) { this.move((view) => view.pan(-0.12 * fast * view.length)); }
  on_right(fast) { this.move((view) => view.pan(0.12 * fast * view.length)); }
  on_up(fast) { this.timeline.scrollTo(this.timeline.scroll - 36 * fast); }
  on_down(fast) { this.timeline.scrollTo(this.timeline.scroll + 36 * fast); }
  on_pageUp() { this.timeline.scrollTo(this.timeline.scroll - this.timeline.plot.clientHeight * 0.9); }
  on_pageDown() { this.timeline.scrollTo(this.timeline.scroll + this.timeline.plot.clientHeight * 0.9); }
  on_whole() { this.move((view) => view.whole(), true); }
  on_fit() {
    const { selected, range } = this.timeline;
    if (selected) this.move(() => this.timeline.show(selected, true), true);
    else if (range) this.move((view) => view.set(...range), true);
  }
  on_range() {
    const { cursors, selected } = this.timeline;
    if (!cursors.includes(null)) this.selectTime(...cursors);
    else if (selected) this.selectTime(selected.start_ns, selected.start_ns + selected.duration_ns);
    else this.say("Set both cursors (C, Shift C), or select an event first");
  }
  on_back() {
    this.stepBack(this.before, this.behind);
  }
  on_forward() {
    this.stepBack(this.behind, this.before);
  }
  /** Goes to the last of the views `from`; the one that is left is kept in the others. */
  stepBack(from, others) {
    const times = from.pop();
    if (!times) return;
    const { view } = this.timeline;
    others.push([view.from, view.to]);
    view.set(...times);
    this.moved = -STEP_MS;
    this.timeline.redraw();
    this.keep();
  }
  on_search() {
    element("query").focus();
    element("query").select();
  }
  on_mark() {
    const at = this.cursor;
    this.panes.show("marks");
    this.panes.marks.add(at);
  }
  on_table() { this.panes.show("selection"); }
  on_markRange() {
    const { range } = this.timeline;
    if (!range) return this.say("Select a time first: drag on the ruler, or with Shift in the rows");
    this.panes.show("marks");
    return range.forEach((at, place) => this.panes.marks.add(at, place ? "end" : "begin"));
  }
  on_bookmark(fast, { key }) {
    const mark = this.timeline.marks[Number(key) - 1];
    if (mark) this.move((view) => view.set(mark[0] - view.length / 2, mark[0] + view.length / 2), true);
    else this.say(plural(this.timeline.marks.length, "mark is there", "marks are there"));
  }
  on_time() {
    askTime(this.trace.facts.span_ns, (at) => this.move((view) => view.set(at - view.length / 2, at + view.length / 2), true));
  }
  on_cursor() { this.setCursor(0); }
  on_secondCursor() { this.setCursor(1); }
  setCursor(which) {
    const { timeline } = this;
    timeline.cursors[which] = Math.max(0, Math.round(this.cursor));
    const [one, other] = timeline.cursors;
    this.say(one === null || other === null ? `cursor ${which + 1} at ${duration(timeline.cursors[which])}` : `${duration(Math.abs(other - one))} between the cursors`);
    timeline.redrawOverlay();
    this.keep(true);
  }
  on_pin() { this.useRow("pin"); }
  on_hide() { this.useRow("hide"); }
  useRow(tool) {
    const key = this.rows.pointed;
    if (key) this.rows.use(tool, key);
    else this.say("No row is under the pointer");
  }
  on_ask() {
    this.panes.show("sql");
    this.console?.field.focus();
  }
  on_keys() { showKeys(); }
  on_nextHit() { this.hit(false); }
  on_previousHit() { this.hit(true); }
  on_next() { this.step(1); }
  on_previous() { this.step(-1); }
  on_cause() {
    const { selected, links } = this.timeline;
    if (selected?.is_op && links.length) this.select({ event: links[0].event });
  }
  on_effect() {
    const { selected, links } = this.timeline;
    if (selected && !selected.is_op && links.length) this.select({ event: links[0].event });
  }
  on_nothing() {
    this.timeline.choose(null);
    this.timeline.cursors = [null, null];
    this.measured = null;
    this.nothing();
    this.timeline.redraw();
    this.keep(true);
  }
}

async function main() {
  const trace = await read();
  message("");
  tell(trace);
  const { Compare } = trace.traces.length > 1 ? await import("./compare.mjs") : {};
  const app = new App(trace, Compare);
  // For tests in a browser, and for who looks into the page.
  window.rpd = { app, server };
  await app.start();
}

main().catch(failed);
