// A trace that grows, or of which a part is read: the page changes to what the server shows now, and follows the end until people move away.

import { make } from "./elements.mjs";
import { count, percent, shown } from "./format.mjs";
import { server } from "./server.mjs";
import { element } from "./timeline.mjs";

const REST_MS = 250;

export class Growth {
  /** @param {any} app @param {(error: Error) => void} failed */
  constructor(app, failed) {
    this.app = app;
    this.failed = failed;
    this.isLive = app.trace.is_live;
    this.isFollowing = this.isLive;
    this.status = make("span", { id: "growth", role: "status" });
    this.button = make("button", { type: "button", id: "follow", title: "Follow the end of the trace", click: () => this.follow(!this.isFollowing) }, "Follow");
    element("whole").before(this.status, ...(this.isLive ? [this.button] : []));
    server.stale = () => this.renew();
    this.say(app.trace);
  }

  /** Waits for what is shown to change, as long as it may. */
  async run() {
    let now = this.app.trace;
    while (now.is_live || !now.is_whole) {
      try {
        now = await server.grown(server.version);
      } catch (error) {
        this.status.textContent = "";
        this.failed(error);
        return;
      }
      this.say(now);
      if (now.version !== server.version) await this.renew();
      if (now.note) return;
      await new Promise((done) => setTimeout(done, REST_MS));
    }
  }

  /** Says how far the reading is, and whether the trace is followed. */
  say(now) {
    const { status, button } = this;
    status.classList.toggle("wrong", Boolean(now.note));
    if (now.note) status.textContent = shown(now.note);
    else if (!now.is_whole) status.textContent = `A part is shown: ${percent(Math.min(1, now.rows / Math.max(now.of, 1)))} of ${count(now.of)} rows are read`;
    else status.textContent = now.is_live ? "Live" : "";
    // The header has no room for long sentences.
    status.title = status.textContent;
    button.setAttribute("aria-pressed", String(this.isFollowing));
    if (now.note) button.remove();
  }

  follow(isOn) {
    this.isFollowing = isOn;
    this.button.setAttribute("aria-pressed", String(isOn));
    if (isOn) this.app.move((view) => this.toEnd(view));
  }

  toEnd(view) {
    const to = view.span + Math.max(0.02 * view.length, 10);
    if (view.from > 0 || view.to < view.span) view.set(to - view.length, to);
  }

  /** People have moved: where the end is no longer seen it is no longer followed. */
  moved() {
    const { view } = this.app.timeline;
    if (this.isFollowing && view.to < view.span) this.follow(false);
  }

  /** Changes to what the server shows now; one after another. */
  renew() {
    this.renewing = (this.renewing ?? Promise.resolve()).then(() => this.change()).catch((error) => this.failed(error));
    return this.renewing;
  }

  async change() {
    const { app } = this;
    const { timeline } = app;
    const trace = await server.trace();
    if (!trace.is_read || trace.version === server.version) return;
    const old = app.trace;
    // Where times of the old one are now: an event that began before all others may have come.
    const moved = Number(BigInt(old.facts.first_ns) - BigInt(trace.facts.first_ns)) + trace.traces[0].shift_ns - old.traces[0].shift_ns;
    const { view } = timeline;
    const isAll = view.from <= 0 && view.to >= old.facts.span_ns;
    const goTo = (next) => {
      next.span = Math.max(trace.facts.span_ns, 1);
      if (isAll) next.whole();
      else if (this.isFollowing) this.toEnd(next);
      else next.set(next.from + moved, next.to + moved);
    };
    await timeline.renew(trace, goTo, moved);
    app.renewed(trace, moved);
  }
}
