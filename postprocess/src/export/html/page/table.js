// A table on the page: only the rows that are in view are elements of it.

// An element with a class and a text. Texts come from the trace: they are never taken for markup.
function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function columnClass(column, at) {
  const kinds = { name: "name", words: "words", percent: "narrow", count: "narrow" };
  return (kinds[column.kind] || "") + (at > 3 ? " minor" : "");
}

// Names differ at their beginnings and at their ends: where one is too long, what is left out is before its last characters.
function nameInto(cell, text) {
  let kept = text.length > 30 ? text.length - 14 : text.length;
  // Not through the middle of a character of two units.
  if (/[\udc00-\udfff]/.test(text.charAt(kept))) kept -= 1;
  cell.replaceChildren(element("span", "begin", text.slice(0, kept)), element("span", "end", text.slice(kept)));
}

function tableView(table) {
  const model = new TableModel(table);
  const whole = element("div");
  const tools = element("div", "tools");
  const search = element("input");
  search.type = "search";
  search.placeholder = "search " + table.title.toLowerCase();
  search.setAttribute("aria-label", search.placeholder);
  const count = element("span");
  tools.append(search, count);
  tools.hidden = table.total < 6;
  const box = element("div", "table");
  const rows = element("div", "rows");
  rows.tabIndex = 0;
  rows.setAttribute("role", "table");
  rows.setAttribute("aria-label", table.title);
  const head = element("div", "head");
  head.setAttribute("role", "row");
  const all = element("div", "all");
  const none = element("div", "none", "nothing found");
  const detail = element("div", "detail");
  detail.hidden = true;
  rows.append(head, all);
  box.append(rows);
  whole.append(tools, box, detail);
  let selected = -1;
  let waiting = false;

  const heads = table.columns.map((column, at) => {
    const button = element("button", columnClass(column, 0), column.title);
    button.type = "button";
    button.title = column.help;
    button.setAttribute("role", "columnheader");
    button.addEventListener("click", () => {
      model.sortBy(at);
      rows.scrollTop = 0;
      draw();
    });
    head.append(button);
    return button;
  });

  function showDetail(at) {
    selected = selected === at ? -1 : at;
    detail.hidden = selected < 0;
    detail.replaceChildren();
    if (selected >= 0) {
      const values = element("dl");
      table.columns.forEach((column, place) => {
        const text = shown(column.kind, table.rows[at][place]);
        if (column.kind === "name") {
          detail.append(element("div", "full", text));
        } else {
          const pair = element("div");
          pair.append(element("dt", "", column.title), element("dd", "", text));
          values.append(pair);
        }
      });
      detail.append(values);
    }
    draw();
  }

  function rowElement(at, place, rowHeight) {
    const row = element("div", "row");
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", String(place + 2));
    if (at === selected) row.setAttribute("aria-selected", "true");
    row.style.top = place * rowHeight + "px";
    table.columns.forEach((column, number) => {
      const value = table.rows[at][number];
      const text = shown(column.kind, value);
      const cell = element("div", "cell " + columnClass(column, number), text);
      if (column.kind === "name") nameInto(cell, text);
      else cell.dataset.title = column.title;
      cell.setAttribute("role", "cell");
      if (isText(column.kind)) cell.title = text;
      if (column.kind === "percent" && value > 0) {
        const share = element("div", "share");
        share.style.width = Math.min(100, value) * 0.9 + "%";
        cell.append(share);
      }
      row.append(cell);
    });
    row.addEventListener("click", () => showDetail(at));
    return row;
  }

  function draw() {
    const rowHeight = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
    const total = model.shown.length;
    count.textContent =
      digits(total, 0) + (total === table.total ? "" : " of " + digits(table.total, 0)) + (table.total === 1 ? " row" : " rows");
    heads.forEach((button, at) => {
      const isSorted = model.sorted !== null && model.sorted.column === at;
      const arrow = !isSorted ? "" : model.sorted.descending ? " ↓" : " ↑";
      button.textContent = table.columns[at].title + arrow;
      if (isSorted) button.setAttribute("aria-sort", model.sorted.descending ? "descending" : "ascending");
      else button.removeAttribute("aria-sort");
    });
    rows.setAttribute("aria-rowcount", String(total + 1));
    all.style.height = (total === 0 ? 48 : total * rowHeight) + "px";
    if (total === 0) {
      all.replaceChildren(none);
      return;
    }
    const [first, last] = model.visible(rows.scrollTop, rows.clientHeight || window.innerHeight, rowHeight);
    const drawn = [];
    for (let place = first; place < last; place += 1) drawn.push(rowElement(model.shown[place], place, rowHeight));
    all.replaceChildren(...drawn);
  }

  function drawSoon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  }

  search.addEventListener("input", () => {
    model.filter(search.value);
    rows.scrollTop = 0;
    drawSoon();
  });
  rows.addEventListener("scroll", drawSoon, { passive: true });
  window.addEventListener("resize", drawSoon);
  rows.addEventListener("keydown", (event) => {
    if (event.target !== rows || selected < 0 || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    const place = model.shown.indexOf(selected) + (event.key === "ArrowDown" ? 1 : -1);
    if (place >= 0 && place < model.shown.length) showDetail(model.shown[place]);
    event.preventDefault();
  });
  return { element: whole, draw };
}
