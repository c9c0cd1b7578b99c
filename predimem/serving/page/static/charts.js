// What the robot measured and was told, how long the models took, and how fast control ran.

import { h } from "./dom.js";
import { Chart } from "./chart.js";

/** The rows of a trajectory, column by column; more of them may come later. */
export class Rows {
  constructor() {
    Object.assign(this, { every: 1, steps: [], at_s: [], s1_ms: [], rate_hz: [], state: [], action: [] });
  }

  get next() {
    return this.steps.length ? this.steps.at(-1) + 1 : 0;
  }

  /** told: what the server gives; rows before `first` go. */
  add(told, first = 0) {
    const columns = ["steps", "at_s", "s1_ms", "rate_hz", "state", "action"];
    const gone = this.steps.findIndex((step) => step >= first);
    for (const name of columns) this[name] = [...this[name].slice(gone < 0 ? this[name].length : gone), ...told[name]];
    this.every = told.every;
  }
}

/** `seek(step)`: a click or a drag in a chart. */
export class Charts {
  constructor(seek = null) {
    this.state = new Chart("State", { seek });
    this.action = new Chart("Actions", { seek });
    this.rate = new Chart("Control rate", { height: 52, digits: 1, zero: true, seek });
    this.s1 = new Chart("S1 latency", { height: 52, digits: 0, zero: true, seek });
    this.s2 = new Chart("S2 latency", { height: 52, digits: 0, zero: true, seek });
    this.thinned = h("span", { class: "count" });
    this.none = h("p", { class: "quiet" }, "");
    this.motion = h("section", { class: "card motion", "aria-label": "State and actions" },
      h("h2", {}, "State, as the robot measured it ", this.thinned), this.none, this.state.element,
      h("h2", { class: "second" }, "Actions, the first row of each reply"), this.action.element);
    this.speed = h("section", { class: "card speed", "aria-label": "Latency and rate" },
      h("h2", {}, "Latency and control rate over the episode"), this.rate.element, this.s1.element, this.s2.element);
    this.all = [this.state, this.action, this.rate, this.s1, this.s2];
  }

  /** why: what is said where there are no rows. */
  draw({ first, last, step, hz, rows, answers, why = "" }) {
    const { steps } = rows;
    const base = { first, last, step, hz };
    const empty = steps.length === 0;
    this.none.textContent = empty ? why : "";
    this.none.hidden = !empty;
    for (const chart of [this.state, this.action, this.rate, this.s1]) chart.element.hidden = empty;
    this.thinned.textContent = rows.every > 1 ? `(every ${rows.every}th observation is drawn)` : "";
    if (!empty) {
      this.state.draw({ ...base, steps, series: columns(rows.state, "state") });
      this.action.draw({ ...base, steps, series: columns(rows.action, "action") });
      this.rate.draw({ ...base, steps, series: [{ name: "control steps a second", values: rows.rate_hz }], guide: { value: hz, name: `the robot's ${hz} Hz` } });
      this.s1.draw({ ...base, steps, series: [{ name: "S1, ms", values: rows.s1_ms }], guide: { value: 1000 / hz, name: `one control step, ${Math.round(1000 / hz)} ms` } });
    }
    const timed = answers.filter(([, , ms]) => ms !== null);
    this.s2.element.hidden = timed.length === 0;
    if (timed.length) this.s2.draw({ ...base, steps: timed.map(([at]) => at), series: [{ name: "S2, ms", values: timed.map(([, , ms]) => ms) }] });
  }

  move(step) {
    for (const chart of this.all) chart.move(step);
  }
}

function columns(rows, name) {
  return rows[0].map((_, i) => ({ name: `${name} ${i}`, values: rows.map((row) => row[i]) }));
}
