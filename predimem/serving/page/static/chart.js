// Numbers along the control steps, as lines.

import { h, list, s, text } from "./dom.js";
import { Scale, follow } from "./scale.js";
import { dash } from "./words.js";

const TOP = 6;

/** height: of the lines in pixels; `seek(step)`: a click or a drag. */
export class Chart {
  constructor(name, { height = 96, digits = 2, zero = false, seek = null } = {}) {
    Object.assign(this, { name, height, digits, zero });
    this.svg = s("svg", { class: "timeline chart", role: "img", "aria-label": name });
    this.box = h("div", { class: "timeline-box" }, this.svg);
    this.legend = h("div", { class: "legend" });
    this.wanted = h("span", { class: "quiet" });
    this.element = h("div", {}, h("div", { class: "legend" }, this.legend, this.wanted), this.box);
    this.only = null; // the one line that is shown
    this.drawn = null;
    new ResizeObserver(() => this.drawn && this.draw(this.drawn)).observe(this.box);
    if (seek) follow(this.box, this.svg, () => this.scale, seek);
  }

  /** data: `first`, `last`, `step` (the cursor), `hz`, `steps`, `series` ([{name, values}]), `guide` ({value, name}). */
  draw(data) {
    this.drawn = data;
    const { first, last, step, hz, steps, series, guide } = data;
    const width = Math.max(200, this.box.clientWidth);
    this.scale = new Scale(first, last, width);
    this.drawLegend();
    text(this.wanted, guide ? `dashed: ${guide.name}` : "");
    const shown = series.filter((_, i) => this.only === null || this.only === i);
    const [low, high] = this.range(shown, guide);
    const y = (value) => TOP + this.height * (1 - (value - low) / (high - low));
    const tall = TOP + this.height + 20;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${tall}`);
    this.svg.setAttribute("height", tall);
    const { left, right } = this.scale;
    const label = (value, at, words) => s("text", { class: "tick", x: 0, y: at }, words ?? value.toFixed(this.digits));
    this.svg.replaceChildren(
      s("line", { class: "guide", x1: left, x2: right, y1: TOP, y2: TOP }),
      s("line", { class: "guide", x1: left, x2: right, y1: TOP + this.height, y2: TOP + this.height }),
      label(high, TOP + 8),
      label(low, TOP + this.height),
      ...(guide ? [s("line", { class: "wanted", x1: left, x2: right, y1: y(guide.value), y2: y(guide.value) }, s("title", {}, guide.name))] : []),
      ...series.map((one, i) => (this.only === null || this.only === i ? this.line(steps, one.values, y, i) : null)).filter(Boolean),
      ...this.scale.axis(tall - 4, hz),
    );
    this.cursor = s("g", { class: "cursor" }, s("line", { y1: TOP, y2: TOP + this.height }));
    this.svg.append(this.cursor);
    this.move(step);
  }

  move(step) {
    if (!this.drawn) return;
    this.drawn.step = step;
    this.cursor?.setAttribute("transform", `translate(${this.scale.x(step)} 0)`);
    const { steps, series } = this.drawn;
    const place = placeOf(steps, step);
    [...this.legend.children].forEach((button, i) => {
      let value = null;
      for (let k = place; k >= 0 && value === null && place - k < 50; k--) value = series[i].values[k];
      text(button.lastChild, value === null || value === undefined ? dash : value.toFixed(this.digits));
    });
  }

  range(series, guide) {
    let [low, high] = guide ? [guide.value, guide.value] : [Infinity, -Infinity];
    for (const { values } of series)
      for (const value of values)
        if (value !== null) {
          if (value < low) low = value;
          if (value > high) high = value;
        }
    if (this.zero) low = Math.min(0, low);
    if (!Number.isFinite(low + high)) return [0, 1];
    return high - low < 1e-9 ? [low - 0.5, high + 0.5] : [low, high];
  }

  line(steps, values, y, number) {
    const points = [];
    const every = Math.max(1, Math.ceil(steps.length / (2 * this.scale.width)));
    steps.forEach((step, i) => {
      if (i % every && i !== steps.length - 1) return;
      if (values[i] !== null) points.push(`${this.scale.x(step).toFixed(1)},${y(values[i]).toFixed(1)}`);
    });
    return s("polyline", { class: `series line${number % 8}${number % 16 > 7 ? " dashed" : ""}`, points: points.join(" ") });
  }

  drawLegend() {
    const { series } = this.drawn;
    const entries = series.map((one, i) => ({ ...one, i }));
    list(this.legend, entries, ({ name }) => name, ({ name, i }) => {
      const press = () => {
        this.only = this.only === i ? null : i;
        this.draw(this.drawn);
      };
      const title = series.length > 1 ? "Show this one alone, or all again" : name;
      return h("button", { class: `key line${i % 8}`, title, on: { click: press } }, h("i"), h("span", {}, name), h("b", {}, dash));
    }, (button, { i }) => button.classList.toggle("off", this.only !== null && this.only !== i));
  }
}

/** The place of the last entry that is not after `step`; -1 for none. */
function placeOf(steps, step) {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
