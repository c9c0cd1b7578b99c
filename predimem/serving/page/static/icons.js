// Signs that every machine has: no font is asked for them.

import { s } from "./dom.js";

const PATHS = {
  play: "M4 2.5v11l9.5-5.5z",
  pause: "M3.5 2.5h3.2v11H3.5zM9.3 2.5h3.2v11H9.3z",
  previous: "M11.5 3v10L4.5 8z",
  next: "M4.5 3v10l7-5z",
  first: "M13 3v10L6.5 8zM3 3h2v10H3z",
  last: "M3 3v10l6.5-5zM11 3h2v10h-2z",
};

export function icon(name) {
  return s("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { d: PATHS[name] }));
}
