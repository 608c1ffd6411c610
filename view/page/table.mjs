// Tables of any width and length: only the rows that are seen are elements. To sort by a click on a head, to go through by keys, to save.

import { make } from "./elements.mjs";
import { plural, shown } from "./format.mjs";
import { saveButton } from "./csv.mjs";

const ROW = 21;
const MORE = 8;

/** How many tables there were: their rows have names by which screen readers are told which one is meant. */
let tables = 0;

/**
 * @typedef {object} Column
 * @property {string} name
 * @property {string} [head] what a file calls it, where its unit is to be said
 * @property {boolean} [isNumber]
 * @property {(row: any) => any} value what it is sorted and saved by
 * @property {(row: any) => string} [text] what is shown
 * @property {(row: any) => HTMLElement | null} [chip] what stands in front of it
 * @property {string} [order] what who is asked for an order calls it
 */

export class Table {
  /**
   * @param {{name: string, columns: Column[], rows: any[], open?: (row: any) => void, height?: number, ask?: (order: string, ascending: boolean) => void, order?: string, ascending?: boolean}} of
   * `ask` is asked for rows in another order, where the table has not all of them
   */
  constructor({ name, columns, rows, open, height = 300, ask, order, ascending }) {
    this.id = `table-${(tables += 1)}`;
    this.columns = columns;
    this.rows = rows;
    this.open = open;
    this.ask = ask;
    this.sorted = { by: ask ? columns.findIndex((one) => one.order === order) : -1, down: !ascending };
    this.at = 0;
    this.heads = columns.map(({ name: text, isNumber }, at) =>
      make("div", { role: "columnheader", class: isNumber ? "number" : undefined },
        make("button", { type: "button", class: "sort", click: () => this.sort(at) }, shown(text))));
    this.body = make("div", { class: "rows" });
    this.space = make("div", { class: "space", role: "rowgroup" }, this.body);
    this.scroller = make("div", { class: "scroller", role: "grid", tabindex: "0", "aria-label": name, "aria-rowcount": String(rows.length + 1), "aria-colcount": String(columns.length) },
      make("div", { role: "rowgroup", class: "heads" }, make("div", { role: "row", class: "row head", "aria-rowindex": "1" }, this.heads)), this.space);
    this.scroller.style.maxHeight = `${height}px`;
    this.space.style.height = `${rows.length * ROW}px`;
    this.root = make("div", { class: "virtual" },
      make("p", { class: "soft" }, `${plural(rows.length, "row", "rows")} `, saveButton(name.replace(/\W+/g, "-").toLowerCase(), () => [columns.map((one) => one.head ?? one.name), this.rows.map((row) => columns.map((one) => one.value(row)))])),
      this.scroller);
    const widths = columns.map(({ name: head, isNumber, text, value }) => {
      const shownText = text ?? ((row) => String(value(row) ?? ""));
      // A head has room for the sign of its order.
      const longest = this.rows.slice(0, 200).reduce((most, row) => Math.max(most, shownText(row).length), head.length + 3);
      return isNumber ? `${Math.min(longest + 3, 26)}ch` : `${Math.min(longest + 4, 64)}ch`;
    });
    this.root.style.setProperty("--columns", widths.join(" "));
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.draw();
  }

  sort(by) {
    const { columns } = this;
    const down = this.sorted.by === by ? !this.sorted.down : Boolean(columns[by].isNumber);
    this.sorted = { by, down };
    if (this.ask) {
      // The rows come later; a second click in between is about the order that was asked for.
      this.draw();
      return this.ask(columns[by].order, !down);
    }
    const { value, isNumber } = columns[by];
    const order = isNumber
      ? (one, other) => Number(one ?? -Infinity) - Number(other ?? -Infinity)
      : (one, other) => String(one ?? "").localeCompare(String(other ?? ""));
    this.rows = [...this.rows].sort((one, other) => (down ? -1 : 1) * order(value(one), value(other)));
    this.draw();
  }

  key(event) {
    const { scroller } = this;
    if (event.target !== scroller) return;
    const page = Math.max(1, Math.floor(scroller.clientHeight / ROW) - 2);
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.rows.length - 1 }[event.key];
    if (to !== undefined) {
      this.at = Math.max(0, Math.min(to, this.rows.length - 1));
      const top = this.at * ROW;
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      const room = scroller.clientHeight - 2 * ROW;
      if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
      this.draw();
    } else if (event.key === "Enter") this.open?.(this.rows[this.at]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  draw() {
    const { scroller, sorted: { by, down } } = this;
    this.heads.forEach((head, at) => head.setAttribute("aria-sort", at !== by ? "none" : down ? "descending" : "ascending"));
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - MORE);
    const last = Math.min(this.rows.length, first + Math.ceil((scroller.clientHeight || 400) / ROW) + 2 * MORE);
    if (this.at >= first && this.at < last) scroller.setAttribute("aria-activedescendant", `${this.id}-${this.at}`);
    else scroller.removeAttribute("aria-activedescendant");
    this.body.style.transform = `translateY(${first * ROW}px)`;
    this.body.replaceChildren(...this.rows.slice(first, last).map((row, place) => {
      const at = first + place;
      const cells = this.columns.map(({ value, text, isNumber, chip }) => {
        const words = text ? text(row) : value(row) === null || value(row) === undefined ? "" : String(value(row));
        return make("div", { role: "gridcell", class: isNumber ? "number" : undefined, title: words.length > 24 ? shown(words.slice(0, 4000)) : undefined }, chip?.(row), shown(words.slice(0, 600)));
      });
      return make("div", {
        role: "row", id: `${this.id}-${at}`, class: `row${at === this.at ? " at" : ""}${this.open ? " opens" : ""}`, "aria-rowindex": String(at + 2), "aria-selected": String(at === this.at),
        click: () => {
          this.at = at;
          this.draw();
          this.open?.(row);
        },
      }, cells);
    }));
  }
}
