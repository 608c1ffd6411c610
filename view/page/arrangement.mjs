// How people arrange the rows: what is pinned to the top, hidden, moved, and left by a filter.

/**
 * @typedef {object} Arrangement
 * @property {string[]} pins keys of groups, tracks and counters that stay at the top, in their order
 * @property {string[]} hidden keys of what is not shown
 * @property {string[]} order keys of groups and tracks in the order that people gave; what is not named keeps its place behind them
 * @property {string} words what labels have that are shown
 */

/** @returns {Arrangement} */
export const asFound = () => ({ pins: [], hidden: [], order: [], words: "" });

const has = (words, ...texts) => {
  const all = texts.filter(Boolean).join(" ").toLowerCase();
  return words.every((word) => all.includes(word));
};

/** Parts in the order that was given; the others where they were found, behind those before them. */
function ordered(parts, order) {
  const place = new Map(order.map((key, at) => [key, at]));
  if (!parts.some((part) => place.has(part.key))) return parts;
  const known = parts.filter((part) => place.has(part.key)).sort((one, other) => place.get(one.key) - place.get(other.key));
  // Places of those that are named are filled with them in the new order.
  return parts.map((part) => (place.has(part.key) ? known.shift() : part));
}

/** Groups of one host behind each other, in the order of their first ones; those of no known host last. Each trace's by themselves, behind those of the page. */
function byHost(groups) {
  const hosts = [...new Set(groups.map((group) => group.host).filter(Boolean)), null];
  const sources = [...new Set(groups.map((group) => (group.isOwn ? null : (group.source ?? 0))))].sort((one, other) => (one ?? -1) - (other ?? -1));
  return sources.flatMap((source) => {
    const of = groups.filter((group) => (group.isOwn ? null : (group.source ?? 0)) === source);
    return hosts.flatMap((host) => of.filter((group) => (group.host ?? null) === host));
  });
}

/**
 * What is shown: pinned lines, and groups with what is left of them.
 * @param {any[]} groups
 * @param {Arrangement} arrangement
 * @returns {{pinned: {group: any, track?: any, counter?: any}[], groups: any[]}}
 */
export function arranged(groups, { pins, hidden, order, words }) {
  const gone = new Set([...hidden, ...pins]);
  const looked = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = new Map();
  for (const group of groups) {
    found.set(group.key, { group });
    for (const track of group.tracks) found.set(track.key, { group, track });
    for (const counter of group.counters) found.set(counter.key, { group, counter });
  }
  const shown = ordered(byHost(groups), order).filter((group) => !hidden.includes(group.key)).map((group) => {
    const isAll = has(looked, group.label, group.host, group.detail);
    const left = (parts) => ordered(parts, order).filter((part) => !gone.has(part.key) && (isAll || has(looked, group.label, group.host, part.label)));
    return { ...group, tracks: left(group.tracks), counters: left(group.counters), all: group, isAll };
  });
  return {
    pinned: pins.filter((key) => !hidden.includes(key)).map((key) => found.get(key)).filter(Boolean),
    groups: shown.filter((group) => group.isAll || group.tracks.length || group.counters.length),
  };
}

/** The order after one part is moved by so many places among its neighbours; null where there is none to change with. */
export function moved(order, keys, key, by) {
  const from = keys.indexOf(key);
  const to = from + by;
  if (from < 0 || to < 0 || to >= keys.length) return null;
  const changed = [...keys];
  changed.splice(to, 0, ...changed.splice(from, 1));
  return [...order.filter((known) => !keys.includes(known)), ...changed];
}

/** Keys without one, or with it behind them. */
export const toggled = (keys, key) => (keys.includes(key) ? keys.filter((known) => known !== key) : [...keys, key]);
