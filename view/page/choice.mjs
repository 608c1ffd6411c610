// Which of two traces a pane is about.

import { make } from "./elements.mjs";
import { shown } from "./format.mjs";

export class Choice {
  /** @param {{facts: {file: string}}[]} traces @param {() => void} changed */
  constructor(traces, changed) {
    this.source = 0;
    const options = traces.map(({ facts }, source) => make("option", { value: String(source) }, `${source ? "B" : "A"}: ${shown(facts.file)}`));
    /** Where there is one trace, there is nothing to choose. */
    this.root = traces.length < 2 ? null : make("select", {
      "aria-label": "Which trace",
      change: () => {
        this.source = Number(this.root.value);
        changed();
      },
    }, options);
  }

  pick(source) {
    if (!this.root || this.source === source) return;
    this.source = source;
    this.root.value = String(source);
  }
}
