// The control steps along the width of the page: the same for the timeline and for all charts below it.

import { s } from "./dom.js";
import { at, clock, time } from "./words.js";

const LEFT = 88; // for the names of the lanes
const RIGHT = 12;

export class Scale {
  constructor(first, last, width) {
    Object.assign(this, { first, last: Math.max(last, first + 1), width, left: LEFT, right: width - RIGHT });
  }

  x(step) {
    return this.left + ((step - this.first) / (this.last - this.first)) * (this.right - this.left);
  }

  /** Steps below `y`, and under them the wall-clock time where it is known (`known`: [step, seconds since 1970]). */
  axis(y, hz, known = []) {
    const wanted = (this.last - this.first) / Math.max(2, Math.floor((this.width - LEFT) / 120));
    const power = 10 ** Math.floor(Math.log10(Math.max(1, wanted)));
    const every = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= wanted) ?? 10 * power;
    const marks = [];
    for (let step = Math.ceil(this.first / every) * every; step <= this.last; step += every) {
      const x = this.x(step);
      const side = x > this.width - 60 ? "end" : x < LEFT + 20 ? "start" : "middle";
      marks.push(s("text", { class: "tick", x, y, "text-anchor": side }, `${step} · ${clock(step / hz)}`));
      const when = at(known, step)?.[1];
      if (when) marks.push(s("text", { class: "tick wall", x, y: y + 14, "text-anchor": side }, time(when)));
    }
    return marks;
  }
}

/** `seek(step)` for a click or a drag in `svg`, whose scale `scale()` is. */
export function follow(element, svg, scale, seek) {
  const go = (event) => {
    const box = svg.getBoundingClientRect();
    const { first, last, left, right } = scale();
    const part = (event.clientX - box.left - left) / (right - left);
    seek(Math.round(first + Math.min(1, Math.max(0, part)) * (last - first)));
  };
  element.classList.add("seekable");
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    go(event);
  });
  svg.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) go(event);
  });
}
