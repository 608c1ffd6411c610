// Which rows of a table are shown, and in which order. Knows nothing of the page.

const isText = (kind) => kind === "name" || kind === "words";

class TableModel {
  constructor(table) {
    this.columns = table.columns;
    this.rows = table.rows;
    this.sorted = null;
    this.order = table.rows.map((_, at) => at);
    this.lowered = null;
    this.query = "";
    this.shown = this.order;
  }

  // Sorts by a column: numbers from the largest, texts from A, and the other way round when asked again. Equal rows stay in the order
  // in which the table has them; rows without a value come last.
  sortBy(column) {
    const text = isText(this.columns[column].kind);
    const descending = this.sorted && this.sorted.column === column ? !this.sorted.descending : !text;
    this.sorted = { column, descending };
    const turn = descending ? -1 : 1;
    const value = (at) => this.rows[at][column];
    const compare = text ? (a, b) => (a < b ? -1 : a > b ? 1 : 0) : (a, b) => a - b;
    this.order = this.rows.map((_, at) => at);
    this.order.sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      if (a === null || b === null) return a === b ? one - other : a === null ? 1 : -1;
      return turn * compare(a, b) || one - other;
    });
    this.filter(this.query);
  }

  // Keeps the rows whose texts have every word of the query, in any case.
  filter(query) {
    this.query = query;
    const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
    if (words.length === 0) {
      this.shown = this.order;
      return;
    }
    if (this.lowered === null) {
      const texts = this.columns.map((column, at) => (isText(column.kind) ? at : -1)).filter((at) => at >= 0);
      this.lowered = this.rows.map((row) => texts.map((at) => row[at] ?? "").join("\n").toLowerCase());
    }
    this.shown = this.order.filter((at) => words.every((word) => this.lowered[at].includes(word)));
  }

  // The rows that a window of `height` pixels has, scrolled by `top`, with some around them.
  visible(top, height, rowHeight) {
    const around = 8;
    const first = Math.max(0, Math.floor(top / rowHeight) - around);
    const last = Math.min(this.shown.length, Math.ceil((top + height) / rowHeight) + around);
    return [Math.min(first, last), last];
  }
}
