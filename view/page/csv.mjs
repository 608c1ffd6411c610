// Tables as comma-separated values, for a file of one's own.

import { make } from "./elements.mjs";

/** A cell. One that a spreadsheet would take for a formula gets a quote in front of it; numbers stay numbers. */
export function cell(value) {
  let text = value === null || value === undefined ? "" : String(value);
  if (/^[=+\-@\t\r]/.test(text) && !/^-?[\d.]+(e[+-]?\d+)?$/i.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A table with its heads. */
export const csv = (heads, rows) => [heads, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";

/** A button that saves a table, which is made when it is pressed; nothing where it cannot be made. */
export function saveButton(name, table) {
  return make("button", {
    type: "button",
    title: "Save the table as a file of comma-separated values",
    click: async () => {
      const made = await table();
      if (!made) return;
      const [heads, rows] = made;
      const url = URL.createObjectURL(new Blob([csv(heads, rows)], { type: "text/csv" }));
      const link = make("a", { href: url, download: `${name}.csv` });
      document.body.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    },
  }, "CSV");
}
