// Questions to the server that the page came from.

/** What the server says went wrong, in words for people. */
export class Failure extends Error {}

async function ask(path, parameters, signal) {
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
  return answer;
}

const json = async (path, parameters, signal) => (await ask(path, parameters, signal)).json();

function selection([from, to], rows, more) {
  const times = { from: Math.max(0, Math.floor(from)), to: Math.max(0, Math.ceil(to)) };
  return { ...times, ...(rows ? { rows: rows.join(",") } : {}), ...more };
}

export const server = {
  requests: 0,
  bytes: 0,
  trace: () => json("trace", {}),
  async tiles(level, first, tiles, rows, signal) {
    server.requests += 1;
    const answer = await ask("tiles", { level, first, tiles, rows: rows.join(",") }, signal);
    const buffer = await answer.arrayBuffer();
    server.bytes += buffer.byteLength;
    return buffer;
  },
  names: (from) => json("names", { from }),
  /** @param {{event?: number, op?: string, call?: string, brief?: boolean}} which */
  event: (which, signal) => json("event", which, signal),
  search: (q, signal) => json("search", { q }, signal),
  /** Numbers about the events of rows, or of all, in a time. */
  statistics: (time, rows, more, signal) => json("statistics", selection(time, rows, more), signal),
  /** The next event of a name there. */
  next: (time, rows, more, signal) => json("next", selection(time, rows, more), signal),
  value: (row, at, [from, to]) => json("value", { row, at: Math.max(0, Math.floor(at)), from: Math.max(0, Math.floor(from)), to: Math.max(0, Math.ceil(to)) }),
  alive: () => ask("alive", {}),
};
