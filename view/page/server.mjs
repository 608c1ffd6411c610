// Questions to the server that the page came from.

import { decode } from "./tiles.mjs";

/** What the server says went wrong, in words for people. */
export class Failure extends Error {}

/**
 * Asks, and takes an answer only where it is of what the page shows: otherwise rows and events have other numbers.
 * @param {number | null} version what the answer has to be of
 */
async function ask(path, parameters, signal, version = server.version) {
  const query = new URLSearchParams(parameters).toString();
  let answer;
  try {
    answer = await fetch(query ? `${path}?${query}` : path, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure("rpd view has ended: start it again");
  }
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw new Failure(said.error ?? `the server says ${answer.status}`);
  }
  const of = answer.headers.get("rpd-version");
  if (version !== null && of !== null && Number(of) !== version) {
    server.stale();
    throw new DOMException("the trace has changed", "AbortError");
  }
  return answer;
}

const json = async (path, parameters, signal, version) => (await ask(path, parameters, signal, version)).json();

const part = (time) => (time ? { from: Math.max(0, Math.floor(time[0])), to: Math.max(0, Math.ceil(time[1])) } : {});

const selection = (time, rows, more) => ({ ...part(time), ...(rows ? { rows: rows.join(",") } : {}), ...more });

export const server = {
  requests: 0,
  /** Whether it answers what the file has to be read for. */
  readsFile: true,
  bytes: 0,
  /** Number of what the page shows. @type {number | null} */
  version: null,
  /** Is called when the server shows something else. */
  stale() {},
  trace: () => json("trace", {}, undefined, null),
  /** Waits until the server shows something else than this. */
  grown: (version) => json("grown", { version }),
  /** Lays the second trace where it is to be. */
  align: (how) => json("align", how),
  async tiles(level, first, tiles, rows, signal, version) {
    server.requests += 1;
    const answer = await ask("tiles", { level, first, tiles, rows: rows.join(",") }, signal, version);
    const buffer = await answer.arrayBuffer();
    server.bytes += buffer.byteLength;
    return decode(buffer);
  },
  names: (from, version) => json("names", { from }, undefined, version),
  /** @param {{event?: number, op?: string, call?: string, brief?: boolean}} which */
  event: (which, signal) => json("event", which, signal),
  search: (q, signal) => json("search", { q }, signal),
  /** The next hit of a search, behind an event or a time, or in front of it. */
  hit: (q, whence) => json("hit", { q, ...whence }),
  /** Numbers about the events of rows, or of all, in a time. */
  statistics: (time, rows, more, signal) => json("statistics", selection(time, rows, more), signal),
  /** What differs between two traces in a time. */
  deltas: (time, more, signal) => json("deltas", selection(time, null, more), signal),
  /** The events there, one by one. */
  events: (time, rows, more, signal) => json("events", selection(time, rows, more), signal),
  /** The next event of a name there. */
  next: (time, rows, more, signal) => json("next", selection(time, rows, more), signal),
  value: (row, at, time) => json("value", { row, at: Math.max(0, Math.floor(at)), ...part(time) }),
  /** An answer to a question in SQL. */
  query: (q, source, signal) => json("query", { q, source }, signal),
  queries: () => json("queries", {}),
  /** A report on what begins in a time, or on all. */
  report: (which, time, source, signal) => json("report", { which, source, ...part(time) }, signal),
  tree: (of, time, source, signal) => json("tree", { of, source, ...part(time) }, signal),
  code: (name, source, signal) => json("code", { name, source }, signal),
  roofline: (kernel, signal) => json("roofline", kernel, signal),
  /** Tracks that are worked out when they are asked for: streams, markers, graphs, memory. */
  derive: (what, version) => json("derive", { what }, undefined, version),
  /** What an event waited for, and what waited for it. */
  waits: (event, signal) => json("waits", { event }, signal),
  /** The span of such a track at a time. */
  span: (row, at, near) => json("span", { row, at: Math.max(0, Math.round(at)), near: Math.ceil(near) }),
  alive: () => ask("alive", {}),
};
