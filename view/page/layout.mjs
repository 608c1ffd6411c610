// Where rows are: groups with a bar of how busy they are, below it their tracks, each with its rows.

export const HEAD = 26;
export const ROW = 18;
export const BAR = 22;
export const COUNTER = 36;
const GAP = 6;

/**
 * @typedef {object} Line
 * @property {"group" | "busy" | "row" | "counter"} sort
 * @property {number} row number of what it shows
 * @property {number} top
 * @property {number} height
 * @property {any} group
 * @property {any} [track]
 * @property {any} [counter]
 * @property {number} [level] which of the track's rows it is
 */

/** Lines of all that is open, from the top; and their height. @param {Set<string>} closed */
export function layout(groups, closed) {
  /** @type {Line[]} */
  const lines = [];
  let top = 0;
  for (const group of groups) {
    lines.push({ sort: "group", row: group.busy, top, height: HEAD, group });
    top += HEAD;
    if (!closed.has(group.key)) {
      for (const track of group.tracks) {
        if (closed.has(track.key)) {
          lines.push({ sort: "busy", row: track.busy, top, height: BAR, group, track });
          top += BAR;
        } else {
          track.rows.forEach((row, level) => {
            lines.push({ sort: "row", row, top, height: ROW, group, track, level });
            top += ROW;
          });
        }
        top += GAP;
      }
      for (const counter of group.counters) {
        lines.push({ sort: "counter", row: counter.row, top, height: COUNTER, group, counter });
        top += COUNTER + GAP;
      }
    }
    top += GAP;
  }
  return { lines, height: top };
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

/** All rows with events of a line. @param {Line} line */
export function rowsOf(line) {
  if (line.sort === "row") return [line.row];
  if (line.sort === "busy") return line.track.rows;
  if (line.sort === "counter") return [];
  return line.group.tracks.flatMap((track) => track.rows);
}
