// Questions in SQL: a field, the answer as a table, and its rows as rows of the page.

import { make } from "./elements.mjs";
import { Choice } from "./choice.mjs";
import { count, plural, shown } from "./format.mjs";
import { Table } from "./table.mjs";

const START = "select * from kernel limit 100";

export class Console {
  /**
   * @param {any} server
   * @param {{traces: any[], asRows: (key: string, label: string, detail: string, events: any[]) => void, renewed: (key: string, label: string, detail: string, events: any[]) => void, select: (event: number) => void, go: (from: number, to: number) => void, changed: () => void}} does
   */
  constructor(server, { traces, asRows, renewed, select, go, changed }) {
    this.server = server;
    this.asRows = asRows;
    this.renewed = renewed;
    this.select = select;
    this.go = go;
    this.changed = changed;
    this.choice = new Choice(traces, () => this.question && this.ask());
    this.field = make("textarea", { rows: "3", spellcheck: "false", "aria-label": "Question in SQL", autocomplete: "off" });
    this.field.value = START;
    this.field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.ask();
      } else if (event.key === "Escape") document.getElementById("plot").focus();
    });
    this.ready = make("select", {
      "aria-label": "Ready-made questions",
      change: () => {
        if (this.ready.value) this.field.value = this.ready.value;
        this.ready.value = "";
        this.ask();
      },
    }, make("option", { value: "" }, "Ready-made questions"));
    this.button = make("button", { type: "button", disabled: "", click: () => this.asRows(...this.group()) }, "As rows");
    this.said = make("p", { class: "soft", role: "status" }, "Ctrl Enter asks. A question may only read, and takes 10 s at most.");
    this.answer = make("div", {});
    this.root = make("div", { class: "console" }, this.field,
      make("div", { class: "controls" }, make("button", { type: "button", click: () => this.ask() }, "Ask"), this.choice.root, this.ready, this.button), this.said, this.answer);
    this.isListed = false;
  }

  /** Lists ready-made questions when the pane is looked at first. */
  async shown() {
    if (this.isListed) return;
    this.isListed = true;
    for (const { name, question } of await this.server.queries()) this.ready.append(make("option", { value: name }, `${name}: ${question}`));
  }

  async ask(question = this.field.value, source = this.choice.source) {
    this.asking?.abort();
    this.asking = new AbortController();
    this.field.value = question;
    this.choice.pick(source);
    this.question = question;
    this.said.classList.remove("wrong");
    this.said.textContent = "Asking";
    this.button.disabled = true;
    try {
      const found = await this.server.query(question, source, this.asking.signal);
      this.found = found;
      const event = new Map(found.events.map((one) => [one.at, one]));
      const cut = found.is_cut ? "; there are more: add a LIMIT or a WHERE" : "";
      this.said.textContent = `${plural(found.rows.length, "row", "rows")} in ${count(found.took_ms)} ms${cut}`;
      this.button.disabled = !found.events.length;
      this.button.title = found.events.length ? "Rows with start and end, or with the id of an operation or call" : "No row has start and end, or the id of an operation or call";
      const table = new Table({
        name: "answer",
        columns: found.columns.map((name, at) => ({ name, isNumber: found.is_number[at], value: ({ cells }) => cells[at] })),
        rows: found.rows.map((cells, at) => ({ cells, at })),
        open: ({ at }) => {
          const of = event.get(at);
          if (of?.event !== null && of?.event !== undefined) this.select(of.event);
          else if (of) this.go(of.start_ns, of.start_ns + of.duration_ns);
        },
      });
      this.answer.replaceChildren(table.root);
      table.draw();
      this.changed();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.said.textContent = shown(error.message);
      this.said.classList.add("wrong");
      this.answer.replaceChildren();
    }
  }

  /** Asks again what was asked, where events have other numbers now. */
  async again() {
    if (!this.question) return;
    const field = this.field.value;
    await this.ask(this.question);
    this.field.value = field;
    this.renewed(...this.group());
  }

  group() {
    const events = (this.found?.events ?? []).map(({ start_ns, duration_ns, event, name }) => ({ start: start_ns, length: duration_ns, name, event }));
    return ["x.sql", "SQL", this.question, events];
  }
}
