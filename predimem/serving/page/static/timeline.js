// One episode along its control steps: subtasks, the planner's confidence, keyframes.

import { h, s } from "./dom.js";
import { Scale, follow } from "./scale.js";
import { hues } from "./words.js";

const HEIGHT = 132;
const SUBTASKS = { y: 4, height: 34 };
const CONFIDENCE = { y: 48, height: 34 };
const KEYFRAMES = 94;

/** `seek(step)`: a click or a drag; without it the timeline only shows. */
export class Timeline {
  constructor(seek = null) {
    this.svg = s("svg", { class: "timeline", role: "img", "aria-label": "Subtasks, confidence and keyframes over time" });
    this.element = h("div", { class: "timeline-box" }, this.svg);
    this.drawn = null;
    this.cursor = null;
    new ResizeObserver(() => this.drawn && this.draw(this.drawn)).observe(this.element);
    if (seek) follow(this.element, this.svg, () => this.scale, seek);
  }

  /** episode: `spans`, `answers`, `keyframes` (steps), `end`, `hz`, `clock` ([step, seconds since 1970]); `step`: the cursor. */
  draw(episode) {
    this.drawn = episode;
    const width = Math.max(200, this.element.clientWidth);
    const { spans, answers, keyframes, end, hz, step, clock = [] } = episode;
    this.scale = new Scale(episode.first ?? 0, end, width);
    const colours = hues(spans);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.setAttribute("height", HEIGHT);
    this.svg.replaceChildren(
      ...[["subtask", SUBTASKS.y + 21], ["confidence", CONFIDENCE.y + 21], ["keyframes", KEYFRAMES + 4]].map(([name, y]) => s("text", { class: "tick", x: 0, y }, name)),
      s("rect", { class: "lane", x: this.scale.left, y: SUBTASKS.y, width: this.scale.right - this.scale.left, height: SUBTASKS.height, rx: 6 }),
      ...spans.map((span, i) => this.span(span, spans[i + 1]?.[0] ?? end, colours.get(span[1]), step)),
      ...this.confidence(answers),
      ...keyframes.map((at) => this.keyframe(at)),
      ...this.scale.axis(HEIGHT - 18, hz, clock),
    );
    this.cursor = s("g", { class: "cursor" }, s("line", { y1: 4, y2: KEYFRAMES + 6 }), s("circle", { r: 4, cy: 4 }));
    this.svg.append(this.cursor);
    this.move(step);
  }

  move(step) {
    const x = this.x(step);
    this.cursor?.setAttribute("transform", `translate(${x} 0)`);
  }

  x(step) {
    return this.scale.x(step);
  }

  span([from, label], to, colour, step) {
    const x = this.x(from);
    const width = Math.max(2, this.x(to) - x);
    const current = from <= step && step <= to;
    const group = s("g", { class: `span ${colour}${current ? " current" : ""}` });
    group.append(
      s("title", {}, `${label} (steps ${from} to ${to})`),
      s("rect", { x, y: SUBTASKS.y, width: Math.max(1, width - 1.5), height: SUBTASKS.height, rx: Math.min(6, width / 2) }),
    );
    const letters = Math.floor((width - 18) / 7);
    if (letters > 3) {
      const shown = label.length > letters ? `${label.slice(0, letters - 1)}…` : label;
      group.append(s("text", { x: x + 9, y: SUBTASKS.y + SUBTASKS.height / 2 + 4.5 }, shown));
    }
    return group;
  }

  confidence(answers) {
    const { y, height } = CONFIDENCE;
    const known = answers.filter(([, value]) => value !== null);
    const guide = [0, 1].map((value) =>
      s("line", { class: "guide", x1: this.scale.left, x2: this.scale.right, y1: y + height * (1 - value), y2: y + height * (1 - value) }),
    );
    const failed = answers.filter(([, , , used]) => used === false).map(([step]) => {
      const x = this.x(step);
      return s("path", { class: "failed", d: `M${x - 3.5} ${y + 13}l7 7m0 -7l-7 7` }, s("title", {}, `no usable answer at step ${step}`));
    });
    if (!known.length) return [...guide, ...failed];
    const points = known.map(([step, value]) => `${this.x(step).toFixed(1)},${(y + height * (1 - value)).toFixed(1)}`);
    const base = y + height;
    const area = `${this.x(known[0][0])},${base} ${points.join(" ")} ${this.x(known.at(-1)[0])},${base}`;
    return [
      ...guide,
      s("polygon", { class: "area", points: area }),
      s("polyline", { class: "curve", points: points.join(" ") }),
      ...failed,
    ];
  }

  keyframe(step) {
    const x = this.x(step);
    const points = `${x - 5},${KEYFRAMES} ${x},${KEYFRAMES - 6} ${x + 5},${KEYFRAMES} ${x},${KEYFRAMES + 6}`;
    return s("polygon", { class: "keyframe", points }, s("title", {}, `keyframe of step ${step}`));
  }
}
