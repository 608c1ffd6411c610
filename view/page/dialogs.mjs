// What lies over the page for a moment: all keys, and where to go to.

import { make } from "./elements.mjs";
import { KEYS } from "./keys.mjs";

const UNITS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9, "": 1 };

/** A time as people write it, ns: 1.5ms, -20 us, 1500; a share of a span: 25%. null where it is none. */
export function timeOf(text, span) {
  const found = text.trim().match(/^([+-]?[\d.,_]+)\s*([a-zµ%]*)$/i);
  const number = found ? Number(found[1].replace(/[,_]/g, "")) : NaN;
  if (!Number.isFinite(number)) return null;
  const unit = found[2] === "%" ? span / 100 : UNITS[found[2]];
  return unit === undefined ? null : number * unit;
}

function dialog(title, ...content) {
  const close = make("button", { type: "button", "aria-label": "Close", click: () => made.close() }, "×");
  const made = make("dialog", { "aria-label": title }, make("header", {}, make("h2", {}, title), close), content);
  made.addEventListener("click", (event) => event.target === made && made.close());
  made.addEventListener("close", () => {
    made.remove();
    document.getElementById("plot").focus();
  });
  document.body.append(made);
  made.showModal();
  return made;
}

export function showKeys() {
  if (document.querySelector("dialog")) return;
  dialog("Keys", make("table", {}, KEYS.map(([keys, what]) => make("tr", {}, make("th", { scope: "row" }, keys), make("td", {}, what)))));
}

/** Asks for a time and goes there. @param {(at: number) => void} go */
export function askTime(span, go) {
  if (document.querySelector("dialog")) return;
  const said = make("p", { class: "soft", role: "status" }, "1.5ms, 20us, 1500 (ns), 25%: since the trace's begin");
  const field = make("input", { type: "text", "aria-label": "Time", autocomplete: "off", spellcheck: "false" });
  const form = make("form", {
    method: "dialog",
    submit: (event) => {
      const at = timeOf(field.value, span);
      if (at === null || at < 0) {
        event.preventDefault();
        said.textContent = "That is no time: write 1.5ms, 20us, 1500 (ns) or 25%";
        return;
      }
      go(Math.min(at, span));
    },
  }, field, make("button", { type: "submit" }, "Go"));
  dialog("Go to a time", form, said);
  field.focus();
}
