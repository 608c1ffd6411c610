// Colours: one of 24 hues for each name, by what it is; how busy a pixel is mixes it with the background.

// Numbers of kinds as the server has them: hue and width of the part of the circle, saturation.
const KINDS = [
  { word: "kernel", hue: 192, width: 110, saturation: 60 },
  { word: "copy", hue: 36, width: 14, saturation: 82 },
  { word: "fill", hue: 54, width: 8, saturation: 66 },
  { word: "collective", hue: 335, width: 24, saturation: 66 },
  { word: "barrier", hue: 0, width: 0, saturation: 4 },
  { word: "call", hue: 214, width: 40, saturation: 20 },
  { word: "wait", hue: 8, width: 14, saturation: 58 },
  { word: "marker", hue: 276, width: 56, saturation: 32 },
  // Of the page's own: times of a process in which it was not recorded, or not whole.
  { word: "not recorded", hue: 0, width: 0, saturation: 0 },
  { word: "records lost", hue: 356, width: 0, saturation: 84 },
];

const HUES = 24;

/** A kernel's name without template arguments, parameters and the suffixes that compilers add to copies. */
export function base(name) {
  const plain = name.replace(/^void /, "").replace(/\.(kd|clone|isra|part|constprop)(\.\d+)?/g, "");
  const end = plain.slice(1).search(/[<(]/);
  return end < 0 ? plain : plain.slice(0, end + 1);
}

/** A number of 32 bits for a text: FNV-1a. */
export function hash(text) {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  }
  return value >>> 0;
}

function rgb(hue, saturation, lightness) {
  const s = saturation / 100;
  const l = lightness / 100;
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

function luminance([r, g, b]) {
  const part = (value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
}

/** The contrast of two colours, as WCAG has it. */
export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** The colour of a name, red, green and blue, and that of a label on it. */
export function colourOf(name, kind, isDark) {
  const { hue, width, saturation } = KINDS[kind] ?? KINDS[4];
  const number = hash(base(name));
  const turn = (((number % HUES) / HUES) - 0.5) * width;
  const lightness = (isDark ? 46 : 68) + ((number >>> 8) % 3) * 5;
  const fill = rgb((hue + turn + 360) % 360, saturation, lightness);
  return { fill, label: labelOn(fill) };
}

/** The colour that labels on this one have. */
function labelOn(fill) {
  return [[0, 0, 0], [255, 255, 255]].sort((one, other) => contrast(other, fill) - contrast(one, fill))[0];
}

/**
 * The colour of what takes so many times as long in another trace: equal is grey, slower goes to orange, faster to blue; twice as slow or
 * fast has the full colour. What has no ratio is fainter than what is equal.
 * @param {number | undefined} ratio
 */
export function colourOfRatio(ratio, isDark) {
  if (ratio === undefined) {
    const fill = isDark ? [44, 51, 60] : [226, 230, 235];
    return { fill, label: labelOn(fill) };
  }
  const grey = isDark ? [84, 94, 106] : [188, 197, 207];
  const full = ratio > 1 ? (isDark ? [224, 122, 40] : [224, 110, 30]) : isDark ? [80, 145, 240] : [60, 130, 230];
  const share = Math.min(1, Math.abs(Math.log2(Math.max(ratio, 1e-9))));
  const fill = grey.map((from, at) => Math.round(from + (full[at] - from) * share));
  return { fill, label: labelOn(fill) };
}

/** Numbers of kinds that events of the trace do not have. */
export const [STOPPED, LOST] = [8, 9];

export const KIND_WORDS = KINDS.map((kind) => kind.word);
