// Marks: times with a name that people give. They are kept in the address.

import { make } from "./elements.mjs";
import { duration, exact, shown } from "./format.mjs";

export class Marks {
  /**
   * @param {import("./timeline.mjs").Timeline} timeline
   * @param {{go: (at: number) => void, changed: (isStep: boolean) => void, leave: () => void}} does
   */
  constructor(timeline, { go, changed, leave }) {
    this.timeline = timeline;
    this.go = go;
    this.changed = changed;
    this.leave = leave;
    this.root = make("div", { class: "marks" });
  }

  /** Sets a mark, whose name can be typed at once. */
  add(at, text = `mark ${this.timeline.marks.length + 1}`) {
    const mark = [Math.round(at), text];
    this.timeline.marks.push(mark);
    this.timeline.marks.sort(([one], [other]) => one - other);
    this.show();
    this.changed(true);
    const name = this.root.querySelectorAll("input")[this.timeline.marks.indexOf(mark)];
    name.focus();
    name.select();
  }

  show() {
    const { marks } = this.timeline;
    if (!marks.length) {
      this.root.replaceChildren(make("p", { class: "soft" }, "M sets a mark at the pointer. The address keeps marks: who opens it sees them too."));
      return;
    }
    const rows = marks.map((mark, place) => {
      const [at] = mark;
      const name = make("input", {
        type: "text", maxlength: "200", autocomplete: "off", spellcheck: "false", "aria-label": `Name of the mark at ${duration(at)}`,
        input: () => {
          mark[1] = name.value;
          this.changed(false);
        },
        keydown: (event) => {
          if (event.key === "Enter" || event.key === "Escape") this.leave();
        },
      });
      name.value = mark[1];
      const since = place ? `${duration(at - marks[place - 1][0])} behind ${shown(marks[place - 1][1])}` : "";
      return make("tr", {},
        make("td", {}, name),
        make("td", { class: "number" }, make("button", { type: "button", class: "link", click: () => this.go(at) }, exact(at))),
        make("td", { class: "soft" }, since),
        make("td", {}, make("button", {
          type: "button", class: "link", "aria-label": `Remove the mark at ${duration(at)}`,
          click: () => {
            marks.splice(marks.indexOf(mark), 1);
            this.show();
            this.changed(true);
          },
        }, "remove")));
    });
    this.root.replaceChildren(make("table", {}, make("tbody", {}, rows)));
  }
}
