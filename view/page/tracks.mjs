// The tracks of ranks without a screen: their order, where they lie, and what answers of the server say of them.

/**
 * @typedef {object} Found how busy a track was
 * @property {number} gpus GPUs that did anything; -1 where a file could not be read
 * @property {number} busy_ns of all of them together
 * @property {number} impossible operations without a time that can be
 * @property {Uint16Array} shares by parts of the axis, of 65535
 */

/** Height of the head of a job, with some room below it, and the least and greatest of a track. */
export const HEAD = 31;
export const BELOW = 5;
export const LEAST = 6;
export const MOST = 22;

/** Tracks that are lower have no height of their own to show a share by. */
export const BARS = 12;

const FIXED = 24;

/**
 * The tracks in an answer, by their numbers.
 * @param {ArrayBuffer} buffer
 * @param {number} parts of the axis
 * @returns {[number, Found][]}
 */
export function decoded(buffer, parts) {
  const view = new DataView(buffer);
  const size = FIXED + 2 * parts;
  return Array.from({ length: Math.floor(buffer.byteLength / size) }, (_, at) => {
    const from = at * size;
    const shares = Uint16Array.from({ length: parts }, (_, part) => view.getUint16(from + FIXED + 2 * part, true));
    const [gpus, busy_ns, impossible] = [view.getInt32(from + 4, true), view.getFloat64(from + 8, true), view.getFloat64(from + 16, true)];
    return [view.getUint32(from, true), { gpus, busy_ns, impossible, shares }];
  });
}

/** The busy share of a track over all of its job; null where it is not known. @param {Found | undefined} found */
export const busy = (found, span) => (found && found.gpus >= 0 ? found.busy_ns / Math.max(1, found.gpus * span) : null);

/** The busy share of a track from one share of the axis to another. */
export function shareOf(shares, from, to) {
  const first = Math.max(0, Math.min(shares.length - 1, Math.floor(from * shares.length)));
  const end = Math.max(first + 1, Math.min(shares.length, Math.round(to * shares.length)));
  let sum = 0;
  for (let part = first; part < end; part += 1) sum += shares[part];
  return sum / (end - first) / 65535;
}

/** What the tracks can be ordered by. */
export const ORDERS = {
  rank: { word: "Rank", of: (track) => track.rank },
  node: { word: "Node", of: (track) => track.node },
  ops: { word: "Operations", of: (track) => track.ops },
  gpus: { word: "GPUs", of: (_, found) => found?.gpus ?? -1 },
  busy: { word: "Busy", of: (_, found, span) => busy(found, span) ?? -1 },
};

/**
 * The numbers of the tracks in an order, those of a job together.
 * @param {any[]} tracks
 * @param {(Found | undefined)[]} found
 */
export function ordered({ tracks, jobs }, found, by, descending) {
  const { of } = ORDERS[by];
  const keys = tracks.map((track, at) => of(track, found[at], jobs[track.job].span_ns));
  const compared = (one, two) => (typeof one === "string" ? one.localeCompare(two, "en", { numeric: true }) : one - two);
  return Array.from(tracks.keys()).sort((one, two) =>
    tracks[one].job - tracks[two].job || (descending ? -1 : 1) * compared(keys[one], keys[two]) || tracks[one].rank - tracks[two].rank || one - two);
}

/**
 * Where heads of jobs and tracks lie from top to bottom, in so high a window.
 * @param {number[]} order numbers of the tracks
 */
export function laidOut({ tracks, jobs }, order, height) {
  const room = height - jobs.length * HEAD;
  const track = Math.max(LEAST, Math.min(MOST, Math.floor(room / Math.max(1, tracks.length))));
  const rows = [];
  let y = 0;
  let job = null;
  // Of the tracks of a job.
  let place = 0;
  for (const at of order) {
    if (tracks[at].job !== job) {
      job = tracks[at].job;
      rows.push({ y, height: HEAD, job, track: null, place: 0 });
      y += HEAD;
      place = 0;
    }
    rows.push({ y, height: track, job, track: at, place });
    y += track;
    place += 1;
  }
  return { rows, height: y, track };
}

/** The row at a height, or the nearest. */
export function rowAt(rows, y) {
  let [from, to] = [0, rows.length - 1];
  while (from < to) {
    const middle = (from + to + 1) >> 1;
    if (rows[middle].y <= y) from = middle;
    else to = middle - 1;
  }
  return from;
}

/** The slice of a track at a time of its job: its number; `all` where there is only one. */
export function sliceAt({ slices }, at) {
  if (slices.length < 2) return "all";
  return (slices.findLast(([, begin]) => begin <= at) ?? slices[0])[0];
}
