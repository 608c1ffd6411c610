// The overview of a dataset: a track for each rank, which opens it as a trace.

import { marks } from "./axis.mjs";
import { make } from "./elements.mjs";
import { count, duration, percent, plural, shown, time } from "./format.mjs";
import { BARS, BELOW, HEAD, ORDERS, busy, decoded, laidOut, ordered, rowAt, shareOf, sliceAt } from "./tracks.mjs";

const element = (id) => document.getElementById(id);

// What stands at the left of each track: from where to where, and how.
const COLUMNS = [["rank", 8, 54, "right"], ["node", 64, 176, "left"], ["ops", 180, 262, "right"], ["gpus", 266, 306, "right"], ["busy", 310, 368, "right"]];
const LEFT = 380;
const RIGHT = 10;
const POLL_MS = 200;
const ALIVE_MS = 60_000;
const LABEL = 14;

let data = null;
let found = [];
let done = 0;
let failures = new Map();
let by = "rank";
let descending = false;
let layout = { rows: [], height: 0, track: 0 };
/** Number of the chosen track, and the share of the axis. */
let chosen = null;
let at = null;
let colours = {};
/** By track, a picture that is as wide as the axis has parts and one pixel high. */
let pictures = new Map();
let waiting = 0;

async function ask(path) {
  let answer;
  try {
    answer = await fetch(path);
  } catch {
    throw new Error("rpd view has ended: start it again");
  }
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `the server says ${answer.status}`);
  return answer;
}

function message(text) {
  element("message").textContent = text;
  element("message").hidden = !text;
}

const plotWidth = () => Math.max(50, element("tracks").clientWidth - LEFT - RIGHT);

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  colours = Object.fromEntries(["back", "raised", "line", "faint", "text", "soft", "accent", "busy", "warn"].map((name) => [name, of(name)]));
  pictures = new Map();
}

/** A picture of the shares of a track: the busier, the less of the background. */
function picture(track) {
  const known = pictures.get(track);
  if (known) return known;
  const { shares } = found[track];
  const canvas = Object.assign(document.createElement("canvas"), { width: shares.length, height: 1 });
  const context = canvas.getContext("2d");
  context.fillStyle = colours.accent;
  for (let part = 0; part < shares.length; part += 1) {
    if (!shares[part]) continue;
    context.globalAlpha = 0.12 + (0.88 * shares[part]) / 65535;
    context.fillRect(part, 0, 1, 1);
  }
  pictures.set(track, canvas);
  return canvas;
}

function paintShares(context, row, y, width) {
  const { shares } = found[row.track];
  if (row.height < BARS) {
    context.drawImage(picture(row.track), LEFT, y, width, row.height - (row.height > 8 ? 1 : 0));
    return;
  }
  const whole = row.height - 3;
  const base = y + row.height - 1;
  context.fillStyle = colours.accent;
  context.beginPath();
  context.moveTo(LEFT, base);
  for (let x = 0; x < width; x += 1) {
    const share = shareOf(shares, x / width, (x + 1) / width);
    const height = share > 0 ? Math.max(1, share * whole) : 0;
    context.lineTo(LEFT + x, base - height);
    context.lineTo(LEFT + x + 1, base - height);
  }
  context.lineTo(LEFT + width, base);
  context.fill();
}

function cell(track, column) {
  const { [column]: text } = {
    rank: data.tracks[track].rank,
    node: shown(data.tracks[track].node) || "-",
    ops: count(data.tracks[track].ops),
    gpus: found[track] && found[track].gpus >= 0 ? found[track].gpus : "",
    busy: share(track),
  };
  return String(text);
}

function share(track) {
  if (found[track]?.gpus < 0) return "failed";
  const value = busy(found[track], data.jobs[data.tracks[track].job].span_ns);
  return value === null ? "…" : found[track].gpus === 0 ? "-" : percent(value);
}

function paintTrack(context, row, y, width) {
  context.fillStyle = colours.faint;
  if (row.height >= BARS) context.fillRect(LEFT, y + 1, width, row.height - 2);
  if (found[row.track]?.gpus >= 0) paintShares(context, row, y, width);
  else if (found[row.track]) {
    context.fillStyle = colours.warn;
    context.fillRect(LEFT, y + row.height / 2 - 1, width, 2);
  }
  const every = Math.max(1, Math.ceil(LABEL / row.height));
  const isChosen = chosen === row.track;
  if (isChosen || row.place % every === 0) {
    const chosenNear = chosen !== null && !isChosen && layout.rows.some((other) => other.track === chosen && Math.abs(other.y - row.y) < LABEL);
    if (!chosenNear) {
      context.fillStyle = found[row.track]?.gpus < 0 || data.tracks[row.track].own_clock ? colours.warn : isChosen ? colours.accent : colours.text;
      for (const [column, from, to, align] of COLUMNS) {
        context.save();
        context.beginPath();
        context.rect(from, y - 8, to - from, row.height + 16);
        context.clip();
        context.textAlign = align;
        context.fillText(cell(row.track, column), align === "right" ? to : from, y + row.height / 2);
        context.restore();
      }
    }
  }
  if (isChosen) {
    context.strokeStyle = colours.text;
    context.strokeRect(LEFT - 2.5, y - 0.5, width + 5, row.height);
  }
}

function paintHead(context, job, y, width) {
  const { name, begin_ns, span_ns } = data.jobs[job];
  const height = HEAD - BELOW;
  context.fillStyle = colours.raised;
  context.fillRect(0, y, LEFT + width + RIGHT, height);
  context.fillStyle = colours.line;
  context.fillRect(0, y + height - 1, LEFT + width + RIGHT, 1);
  context.fillStyle = colours.text;
  context.textAlign = "left";
  const begun = begin_ns ? ` ${new Date(Number(BigInt(begin_ns) / 1_000_000n)).toISOString().slice(0, 19).replace("T", " ")} UTC` : "";
  context.fillText(`${name ? `Job ${shown(name)}` : "No job"}${begun}`, 8, y + height / 2, LEFT - 16);
  context.fillStyle = colours.soft;
  for (const { x, label } of marks(0, span_ns, width)) {
    context.fillRect(LEFT + x, y + height - 6, 1, 5);
    if (x < width - 40) context.fillText(label, LEFT + x + 3, y + height / 2);
  }
}

function paint() {
  waiting = 0;
  if (!data) return;
  const [box, canvas] = [element("tracks"), element("paint")];
  const [full, height, scale] = [box.clientWidth, box.clientHeight, devicePixelRatio];
  if (canvas.width !== Math.round(full * scale) || canvas.height !== Math.round(height * scale)) {
    Object.assign(canvas, { width: Math.round(full * scale), height: Math.round(height * scale) });
    Object.assign(canvas.style, { width: `${full}px`, height: `${height}px` });
  }
  const width = plotWidth();
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = colours.back;
  context.fillRect(0, 0, full, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  const top = box.scrollTop;
  const first = rowAt(layout.rows, top);
  for (let index = first; index < layout.rows.length && layout.rows[index].y < top + height; index += 1) {
    const row = layout.rows[index];
    if (row.track !== null) paintTrack(context, row, row.y - top, width);
  }
  for (let index = first; index < layout.rows.length && layout.rows[index].y < top + height; index += 1) {
    const row = layout.rows[index];
    if (row.track === null) paintHead(context, row.job, row.y - top, width);
  }
  // The head of the job whose tracks are at the top stays there, pushed away by the next.
  const { job } = layout.rows[first] ?? { job: null };
  if (job !== null) {
    const next = layout.rows.slice(first + 1, first + 1 + Math.ceil(HEAD / layout.track) + 1).find((row) => row.track === null);
    paintHead(context, job, next ? Math.min(0, next.y - top - HEAD) : 0, width);
  }
  if (at !== null) {
    context.fillStyle = colours.text;
    context.fillRect(LEFT + at * width, 0, 1, height);
  }
}

function repaint() {
  waiting ||= requestAnimationFrame(paint);
}

function arrange() {
  if (!data) return;
  layout = laidOut(data, ordered(data, found, by, descending), element("tracks").clientHeight);
  element("room").style.height = `${layout.height}px`;
  for (const button of element("heads").children) {
    const isIt = button.dataset.by === by;
    button.setAttribute("aria-pressed", String(isIt));
    button.textContent = `${ORDERS[button.dataset.by].word}${isIt ? (descending ? " ▾" : " ▴") : ""}`;
  }
  repaint();
}

/** Where a track opens as a trace: all of it, or at a time. */
function address(track, share) {
  const of = data.tracks[track];
  if (share === null) return `rank/${track}/all/`;
  const time_ns = Math.round(share * data.jobs[of.job].span_ns);
  return `rank/${track}/${sliceAt(of, time_ns)}/?at=${time_ns}`;
}

/** What there is to say of a track, and of a time in it. */
function said(track, share) {
  const of = data.tracks[track];
  const { span_ns, name } = data.jobs[of.job];
  const lines = [[`rank ${of.rank}`, of.node && `node ${shown(of.node)}`, name && `job ${shown(name)}`].filter(Boolean).join(", ")];
  const read = found[track];
  if (!read) lines.push("not read yet");
  else if (read.gpus < 0) lines.push(shown(failures.get(track) ?? "cannot be read"));
  else if (read.gpus === 0) lines.push("no operations");
  else {
    const { busy_ns, gpus, impossible, shares } = read;
    lines.push(`${percent(busy(read, span_ns))} busy: ${duration(busy_ns)} of ${duration(gpus * span_ns)} of ${gpus} ${gpus === 1 ? "GPU" : "GPUs"}`);
    if (share !== null) {
      const part = Math.min(data.parts - 1, Math.floor(share * data.parts));
      const [from, to] = [part, part + 1].map((edge) => (edge / data.parts) * span_ns);
      lines.push(`from ${time(from, span_ns / data.parts)} to ${time(to, span_ns / data.parts)}: ${percent(shares[part] / 65535)} busy`);
    }
    if (impossible) lines.push(`${plural(impossible, "operation has impossible times and does", "operations have impossible times and do")} not count`);
  }
  lines.push(`${plural(of.ops, "operation", "operations")}, ${plural(of.calls, "call or marker", "calls and markers")}${of.parts > 1 ? `, of ${of.parts} traces` : ""}`);
  if (of.own_clock) lines.push(`shown as if it had begun with its job: ${of.own_clock}`);
  return lines;
}

function choose(track, share, tells) {
  [chosen, at] = [track, share];
  const go = element("go");
  go.hidden = track === null;
  if (track !== null) {
    go.href = address(track, share);
    go.textContent = `Open rank ${data.tracks[track].rank}`;
    if (tells) element("live").textContent = said(track, share).join("; ");
  }
  repaint();
}

/** The track and the share of the axis at a place of the window; no share at the left of the tracks. */
function under({ clientX, clientY }) {
  const box = element("tracks").getBoundingClientRect();
  const y = clientY - box.top;
  // The head of the job covers it.
  if (y < HEAD || !layout.rows.length) return null;
  const row = layout.rows[rowAt(layout.rows, y + element("tracks").scrollTop)];
  if (row.track === null || y + element("tracks").scrollTop >= row.y + row.height) return null;
  const share = (clientX - box.left - LEFT) / plotWidth();
  return { track: row.track, share: share < 0 ? null : Math.min(1, share) };
}

function tip(event) {
  const hit = under(event);
  const box = element("tip");
  box.hidden = hit === null;
  if (!hit) return;
  const [head, ...lines] = said(hit.track, hit.share);
  box.replaceChildren(make("b", {}, head), ...lines.map((line) => make("div", {}, line)));
  const left = Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8);
  const above = event.clientY + 18 + box.offsetHeight > innerHeight;
  Object.assign(box.style, { left: `${Math.max(4, left)}px`, top: `${above ? event.clientY - box.offsetHeight - 10 : event.clientY + 18}px` });
}

/** Goes so many tracks further, and shows where that is. */
function step(by) {
  const tracks = layout.rows.filter((row) => row.track !== null);
  if (!tracks.length) return;
  const now = tracks.findIndex((row) => row.track === chosen);
  const row = tracks[Math.max(0, Math.min(tracks.length - 1, now < 0 ? 0 : now + by))];
  const box = element("tracks");
  if (row.y < box.scrollTop + HEAD) box.scrollTop = row.y - HEAD;
  else if (row.y + row.height > box.scrollTop + box.clientHeight) box.scrollTop = row.y + row.height - box.clientHeight;
  choose(row.track, at, true);
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const page = Math.max(1, Math.floor(element("tracks").clientHeight / (layout.track || 1)) - 1);
  const sideways = (by) => chosen !== null && choose(chosen, Math.max(0, Math.min(1, (at ?? 0.5) + by * (event.shiftKey ? 10 : 1))), true);
  const actions = {
    ArrowUp: () => step(-1),
    ArrowDown: () => step(1),
    PageUp: () => step(-page),
    PageDown: () => step(page),
    Home: () => step(-layout.rows.length),
    End: () => step(layout.rows.length),
    ArrowLeft: () => sideways(-0.01),
    ArrowRight: () => sideways(0.01),
    Enter: () => chosen !== null && location.assign(address(chosen, at)),
    o: () => chosen !== null && location.assign(address(chosen, null)),
    Escape: () => choose(at === null ? null : chosen, null, false),
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function facts() {
  const sum = (of) => data.tracks.reduce((sum, track) => sum + track[of], 0);
  const [tracks, jobs] = [data.tracks.length, data.jobs.length];
  const words = [`${plural(tracks, "rank", "ranks")} of ${plural(jobs, "job", "jobs")}`, plural(sum("ops"), "operation", "operations")];
  if (done < tracks) words.push(`${count(done)} read`);
  element("facts").textContent = words.join(" · ");
}

function health() {
  const far = data.tracks.filter((track) => track.own_clock).length;
  const lines = data.findings.map(shown);
  if (far) lines.push(`${plural(far, "rank is", "ranks are")} shown as if begun with the job: clocks do not fit; the text at the pointer says why`);
  for (const [track, why] of failures) lines.push(`rank ${data.tracks[track].rank}: ${shown(why)}`);
  const most = 5;
  const more = lines.length > most ? [`and ${lines.length - most} more`] : [];
  element("health").replaceChildren(...[...lines.slice(0, most), ...more].map((line) => make("li", {}, line)));
  element("health").hidden = !lines.length;
}

/** Asks for tracks until all have been read. */
async function read() {
  while (done < data.tracks.length) {
    const answer = decoded(await (await ask(`utilisation?from=${done}`)).arrayBuffer(), data.parts);
    for (const [track, of] of answer) found[track] = of;
    done += answer.length;
    if (answer.some(([, { gpus }]) => gpus < 0)) {
      failures = new Map(await (await ask("failures")).json());
      health();
    }
    facts();
    if (answer.length) arrange();
    else await new Promise((go) => setTimeout(go, POLL_MS));
  }
}

function begin() {
  readColours();
  for (const [column, from, to] of COLUMNS) {
    const sort = () => {
      descending = by === column ? !descending : ["ops", "busy", "gpus"].includes(column);
      by = column;
      arrange();
    };
    const button = make("button", { type: "button", "data-by": column, title: `Order by ${ORDERS[column].word.toLowerCase()}`, click: sort });
    Object.assign(button.style, { left: `${from - 4}px`, width: `${to - from + 8}px`, textAlign: column === "node" ? "left" : "right" });
    element("heads").append(button);
  }
  const tracks = element("tracks");
  tracks.addEventListener("scroll", () => {
    element("tip").hidden = true;
    repaint();
  });
  tracks.addEventListener("pointermove", tip);
  tracks.addEventListener("pointerleave", () => (element("tip").hidden = true));
  tracks.addEventListener("click", (event) => {
    const hit = under(event);
    if (!hit) return;
    choose(hit.track, hit.share, false);
    const to = address(hit.track, hit.share);
    if (event.ctrlKey || event.metaKey) window.open(to, "_blank", "noopener");
    else location.assign(to);
  });
  tracks.addEventListener("keydown", pressed);
  new ResizeObserver(arrange).observe(tracks);
  const scheme = () => {
    readColours();
    repaint();
  };
  for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) matchMedia(query).addEventListener("change", scheme);
  setInterval(() => ask("alive").catch(({ message: why }) => message(why)), ALIVE_MS);
}

window.rpd = { ranks: { state: () => ({ data, found, done, layout, chosen, at, waiting, left: LEFT, width: plotWidth() }), said } };

try {
  begin();
  data = await (await ask("ranks")).json();
  document.title = `${data.dataset} - rpd view`;
  element("file").textContent = data.dataset;
  facts();
  health();
  arrange();
  element("tracks").focus({ preventScroll: true });
  await read();
} catch (error) {
  message(error.message);
}
