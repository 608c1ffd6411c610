// Which key does what. Letters are known by their place on the keyboard, so that W A S D lie together everywhere.

/** What each does, for people; keys as they are shown. */
export const KEYS = [
  ["W S, + -, Ctrl wheel", "zoom in and out at the pointer"],
  ["A D, arrows, Shift wheel", "pan; with Shift faster"],
  ["Up, Down, wheel", "scroll the rows"],
  ["F", "fit what is selected"],
  ["R", "select the time between the cursors, or that of the selected event"],
  ["0", "all of the trace"],
  ["Z, Backspace; Shift Z", "back to the view before; forward again"],
  ["G", "go to a time"],
  ["C, Shift C", "set the first, the second cursor at the pointer; the distance is shown between them"],
  ["/", "search; Enter and Shift Enter: next and previous hit"],
  ["N, Shift N", "next and previous hit"],
  [", and .", "previous and next event of the row"],
  ["[ and ]", "along the arrows: to the call, to the operations"],
  ["drag", "pan; with Shift: select an area; on the ruler: select a time"],
  ["click", "select an event; double click: fit it"],
  ["M, Shift M", "set a mark at the pointer, and name it; marks at both ends of the selected time"],
  ["1 to 9", "go to a mark"],
  ["P, H", "pin the row under the pointer to the top, or no longer; hide it"],
  ["T", "table of what is seen or selected; a click on a name goes to its next event, with Shift to the one before"],
  ["Q", "ask in SQL"],
  ["?", "this list"],
  ["Esc", "select nothing, take the cursors away"],
];

const BY_CODE = { KeyW: "in", KeyS: "out", KeyA: "left", KeyD: "right", KeyF: "fit", KeyZ: "back", KeyT: "table", KeyM: "mark", KeyG: "time", KeyR: "range", KeyP: "pin", KeyH: "hide", KeyC: "cursor", KeyQ: "ask" };
const WITH_SHIFT = { KeyN: "previousHit", KeyZ: "forward", KeyM: "markRange", KeyC: "secondCursor" };
const BY_KEY = {
  "+": "in",
  "=": "in",
  "-": "out",
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
  PageUp: "pageUp",
  PageDown: "pageDown",
  0: "whole",
  Home: "whole",
  Backspace: "back",
  "/": "search",
  "?": "keys",
  ",": "previous",
  ".": "next",
  "[": "cause",
  "]": "effect",
  Escape: "nothing",
};

/** What a key asks for, or null. @param {KeyboardEvent} event */
export function action(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (event.shiftKey && event.code in WITH_SHIFT) return WITH_SHIFT[event.code];
  if (event.code === "KeyN") return "nextHit";
  if (/^[1-9]$/.test(event.key)) return "bookmark";
  return BY_KEY[event.key] ?? BY_CODE[event.code] ?? null;
}
