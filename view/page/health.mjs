// What was lost, and what else is wrong with the traces: shown first.

import { count, plural, shown } from "./format.mjs";

/** What the page says of rows that it cannot show, because they end too far from the begin of the timeline. */
function far({ far: rows, far_from_ns: from, file }, readsFile) {
  const others = readsFile ? " Calls, Reports, SQL and the tables of Trace read the file and count them." : "";
  const name = /^[\w.-]+$/.test(file) ? file : "FILE";
  const way = from ? ` A trace of what begins there: rpd trim ${name} --start ${from} -o part.rpd` : "";
  return `${plural(rows, "row ends", "rows end")} more than 104 days behind the begin, up to where a page counts time exactly, and so ${rows === 1 ? "is" : "are"} not shown.${others}${way}`;
}

/** @returns {string[]} a sentence for each fault of a trace, or of several ones */
export function health(trace, readsFile) {
  const of = ({ facts }) => {
    const items = [];
    const lost = facts.lost.reduce((sum, [, number]) => sum + number, 0);
    if (lost) {
      const causes = facts.lost.map(([cause, number]) => `${count(number)} ${shown(cause)}`).join(", ");
      items.push(`Incomplete: ${plural(lost, "record was", "records were")} lost while recording (${causes}).`);
    }
    if (facts.launches_without_op) {
      items.push(`Incomplete: ${plural(facts.launches_without_op, "launch has no operation; its kernel was", "launches have no operation; their kernels were")} not known to have completed.`);
    }
    if (facts.impossible) {
      items.push(`${plural(facts.impossible, "row with impossible times, ids or places is", "rows with impossible times, ids or places are")} not shown; rpd check lists them.`);
    }
    if (facts.outliers) {
      items.push(`${plural(facts.outliers, "row that begins or ends days away from nearly all others is", "rows that begin or end days away from nearly all others are")} not shown; rpd check lists them.`);
    }
    if (facts.far) items.push(far(facts, readsFile));
    if (facts.no_numbers) items.push(`${plural(facts.no_numbers, "value of a sensor is no number and", "values of sensors are no numbers and")} not shown.`);
    return trace.traces.length > 1 ? items.map((text) => `${shown(facts.file)}: ${text}`) : items;
  };
  return [...(trace.notes ?? []), ...trace.traces.flatMap(of)];
}
