// Where rows are: pinned lines, hosts, groups with a bar of how busy they are, below it their tracks, each with its rows.

export const HEAD = 26;
export const ROW = 18;
export const BAR = 22;
export const COUNTER = 36;
export const STACK = 120;
export const NODE = 22;
const GAP = 6;

/**
 * @typedef {object} Line
 * @property {"node" | "group" | "busy" | "row" | "counter"} sort
 * @property {number} row number of what it shows; -1: nothing
 * @property {number} top
 * @property {number} height
 * @property {any} group
 * @property {any} [track]
 * @property {any} [counter]
 * @property {number} [level] which of the track's rows it is
 * @property {boolean} [isPinned] whether it stays where it is when rows are scrolled
 */

/** The key by which all of a host of a trace is closed. */
export const keyOfHost = ({ source, host }) => `${source ? "b." : ""}n:${host ?? ""}`;

/**
 * Lines of all that is open, from the top; their height, and that of those that are pinned.
 * @param {Set<string>} closed
 * @param {{group: any, track?: any, counter?: any}[]} pinned
 */
export function layout(groups, closed, pinned = []) {
  /** @type {Line[]} */
  const lines = [];
  let top = 0;
  const add = (line, height) => {
    lines.push({ ...line, top, height });
    top += height;
  };
  const track = (group, of, more) => {
    if (closed.has(of.key)) add({ sort: "busy", row: of.busy, group, track: of, ...more }, BAR);
    else of.rows.forEach((row, level) => add({ sort: "row", row, group, track: of, level, ...more }, ROW));
    top += GAP;
  };
  const counter = (group, of, more) => {
    add({ sort: "counter", row: of.row, group, counter: of, ...more }, of.stack ? STACK : COUNTER);
    top += GAP;
  };
  const more = { isPinned: true };
  for (const pin of pinned) {
    if (pin.track) track(pin.group, pin.track, more);
    else if (pin.counter) counter(pin.group, pin.counter, more);
    else add({ sort: "group", row: pin.group.busy, group: pin.group, ...more }, HEAD);
  }
  if (pinned.length) top += 2;
  const pinnedHeight = top;
  let host = null;
  const hasHosts = groups.some((group) => group.host);
  for (const group of groups) {
    // Rows of the page's own are on no host.
    const isOnHost = hasHosts && !group.isOwn;
    if (isOnHost && keyOfHost(group) !== host) {
      host = keyOfHost(group);
      add({ sort: "node", row: -1, group }, NODE);
    }
    if (isOnHost && closed.has(host)) continue;
    add({ sort: "group", row: group.busy, group }, HEAD);
    if (!closed.has(group.key)) {
      // A stack stands above the rows with its parts one by one.
      const stackOf = ({ key }) => group.counters.find((of) => of.stack && of.key === key.replace(/\.(\w+)$/, ".c-$1"));
      const stacks = new Set();
      for (const of of group.tracks) {
        const stack = stackOf(of);
        if (stack) counter(group, stack);
        stacks.add(stack);
        track(group, of);
      }
      for (const of of group.counters.filter((one) => !stacks.has(one))) counter(group, of);
    }
    top += GAP;
  }
  return { lines, height: top, pinnedHeight };
}

/** What is closed at first: nothing, but for processes where there is more than a few screens can show. */
export function firstClosed(groups, most = 160) {
  const rows = groups.reduce((sum, group) => sum + group.tracks.reduce((all, track) => all + track.rows.length, 0), 0);
  return rows > most ? groups.filter((group) => !group.is_gpu).map((group) => group.key) : [];
}

/** The line at a height. @param {Line[]} lines */
export function lineAt(lines, y) {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lines[middle].top <= y) low = middle + 1;
    else high = middle;
  }
  const line = lines[low - 1];
  return line && y < line.top + line.height ? line : null;
}

/** For each row the line where it is, or the one that stands for it while it is closed. @param {Line[]} lines */
export function linesOfRows(groups, lines) {
  const of = new Map();
  for (const line of lines) {
    const rows = line.sort === "row" ? [line.row] : line.sort === "busy" ? line.track.rows : [];
    rows.forEach((row) => of.set(row, line));
  }
  for (const line of lines.filter((one) => one.sort === "group")) {
    for (const track of line.group.tracks) {
      for (const row of track.rows) if (!of.has(row)) of.set(row, line);
    }
  }
  return of;
}
