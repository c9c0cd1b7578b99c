// Why a keyframe is the frame it is: the nominations of its cluster, and their median.

import { h, list, s } from "./dom.js";

const WIDTH = 250;
const HIGHEST = 4; // dots above each other

/**
 * The clusters behind the keyframes after the changes up to a step: keyframe -> {keyframe, nominations, moves}.
 * changes: [step, keyframe, keyframes before, [[nominated step, how often], ...]]; a move: {step, from}.
 */
export function clustersAt(changes, step) {
  const found = new Map();
  for (const [at, keyframe, before, nominations] of changes) {
    if (at > step) break;
    const moves = before.flatMap((old) => found.get(old)?.moves ?? []);
    if (before.length && !(before.length === 1 && before[0] === keyframe)) moves.push({ step: at, from: before });
    for (const old of before) found.delete(old);
    found.set(keyframe, { keyframe, nominations, moves });
  }
  return found;
}

export class Why {
  constructor(ownMemory) {
    this.rows = h("ul", { class: "why-rows" });
    this.note = h("p", { class: "quiet" });
    const told = ownMemory
      ? `The memory is ${ownMemory}, not the memory bank: it chooses its keyframes in its own way, and has no clusters of nominations. What S2 nominated is listed with its answers.`
      : "S2 nominates frames again and again. Nominations close together are one event; the middle one of them (the lower median) is its keyframe, so a keyframe moves when later nominations shift the middle.";
    this.note.textContent = told;
    this.element = h("details", { class: "why" }, h("summary", {}, "Why these frames, and why they moved"), this.note, this.rows);
    this.element.open = true;
  }

  /** clusters: as `clustersAt` gives them; held: the keyframes that are shown. */
  draw(clusters, held) {
    const shown = held.filter((step) => clusters.has(step)).map((step) => clusters.get(step)).reverse();
    const key = ({ keyframe, nominations, moves }) => `${keyframe}/${moves.length}/${nominations.map(([at, n]) => `${at}x${n}`).join()}`;
    list(this.rows, shown, key, (cluster) => this.row(cluster));
  }

  row({ keyframe, nominations, moves }) {
    const count = nominations.reduce((sum, [, n]) => sum + n, 0);
    const steps = nominations.map(([step, n]) => (n > 1 ? `${step} (${n}×)` : String(step))).join(", ");
    const many = count === 1 ? `nominated once` : `the median of ${count} nominations: ${steps}`;
    const course = [...moves.map(({ from }) => from.join("+")), keyframe].join(" → ");
    const moved = moves.length ? ` It moved: ${course}, last at step ${moves.at(-1).step}.` : "";
    return h("li", {}, h("b", {}, `step ${keyframe}`), dots(keyframe, nominations), h("span", {}, `${many}.`, h("em", {}, moved)));
  }
}

function dots(keyframe, nominations) {
  const first = nominations[0][0];
  const span = Math.max(1, nominations.at(-1)[0] - first);
  const single = nominations.length === 1;
  const x = (step) => (single ? WIDTH / 2 : 10 + ((step - first) / span) * (WIDTH - 20));
  const marks = nominations.flatMap(([step, n]) =>
    Array.from({ length: Math.min(n, HIGHEST) }, (_, i) => s("circle", { class: step === keyframe ? "median" : "", cx: x(step).toFixed(1), cy: 34 - 8 * i, r: 3.5 }, s("title", {}, `step ${step}, nominated ${n}×`))),
  );
  const line = s("line", { class: "guide", x1: 4, x2: WIDTH - 4, y1: 39, y2: 39 });
  return s("svg", { class: "dots", viewBox: `0 0 ${WIDTH} 42`, width: WIDTH, height: 42, "aria-hidden": "true" }, line, ...marks);
}
