// Values as a reader wants them: four significant digits of the unit that fits.

function digits(value, decimals) {
  return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function duration(ns) {
  const size = Math.abs(ns);
  // A unit ends where rounding would show 1000 of it.
  if (size < 999.5) return digits(ns, 0) + " ns";
  const [value, unit] = size < 999.95e3 ? [ns / 1e3, "us"] : size < 999.95e6 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  const whole = Math.abs(value);
  return digits(value, whole < 9.9995 ? 3 : whole < 99.995 ? 2 : whole < 999.95 ? 1 : 0) + " " + unit;
}

function size(bytes) {
  if (bytes < 1024) return bytes + " B";
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1023.95 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return digits(value, 1) + " " + units[unit];
}

// What a cell of a column of this kind shows; nothing where there is no value.
function shown(kind, value) {
  if (value === null || value === undefined) return "";
  if (kind === "ns") return duration(value);
  if (kind === "percent") return digits(value, 1) + " %";
  if (kind === "bytes") return size(value);
  if (kind === "rate") return digits(value, 2) + " GB/s";
  if (kind === "count") return digits(value, 0);
  return String(value);
}
