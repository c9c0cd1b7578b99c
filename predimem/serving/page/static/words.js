// Numbers and times for people.

export const dash = "–";

export function clock(seconds) {
  const whole = Math.max(0, seconds);
  const minutes = Math.floor(whole / 60);
  const rest = whole - 60 * minutes;
  if (minutes) return `${minutes}:${String(Math.floor(rest)).padStart(2, "0")} min`;
  return `${rest.toFixed(rest < 10 ? 2 : 1)} s`;
}

/** The time of day by this machine's clock; `at_s`: seconds since 1970. */
export function time(at_s) {
  return new Date(1000 * at_s).toLocaleTimeString("en-GB");
}

/** With the day, so that runs of one task can be told apart. */
export function moment(at_s) {
  const day = new Date(1000 * at_s).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return `${day}, ${time(at_s)}`;
}

export function ago(seconds) {
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

export function number(value, digits = 0, unit = "") {
  return value === null || value === undefined ? dash : `${value.toFixed(digits)}${unit}`;
}

export function percent(value) {
  return value === null || value === undefined ? dash : `${Math.round(100 * value)} %`;
}

/** A colour class for each subtask, by the order in which they came. */
export function hues(spans) {
  const found = new Map();
  for (const [, subtask] of spans) if (!found.has(subtask)) found.set(subtask, `hue${found.size % 8}`);
  return found;
}

/** The last of `entries` ([step, ...], ascending) that is not after `step`. */
export function at(entries, step) {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle][0] <= step) low = middle + 1;
    else high = middle;
  }
  return low ? entries[low - 1] : null;
}
