// What the planner answered, word for word, and why it did not.

import { h, list, text } from "./dom.js";
import { dash, number, percent, time } from "./words.js";

/** `seek(step)`: a click on an answer. */
export class Answers {
  constructor(seek = null) {
    this.seek = seek;
    this.rows = h("tbody");
    this.none = h("p", { class: "quiet" }, "No answer yet.");
    const heads = ["step", "time", "raw answer", "nominated", "confidence", "took"];
    this.table = h("table", { class: "answers" }, h("thead", {}, h("tr", {}, heads.map((name) => h("th", {}, name)))), this.rows);
    this.element = h("section", { class: "card", "aria-label": "What S2 answered" }, h("h2", {}, "What S2 answered, word for word"), this.none, h("div", { class: "scroll" }, this.table));
  }

  /** said: [{step, at_s, subtask, text, error, confidence, ms, nominated}]; current: the one that is marked. */
  draw(said, current = null) {
    this.none.hidden = said.length > 0;
    this.table.hidden = said.length === 0;
    list(this.rows, said, (answer) => `${answer.step} ${answer.error ?? ""}`, (answer) => this.row(answer), (row, answer) => row.classList.toggle("current", answer === current));
  }

  row(answer) {
    const words = h("td", { class: "raw" });
    if (answer.error) words.append(h("span", { class: "error" }, answer.error));
    if (answer.text) words.append(h("code", {}, answer.text));
    else if (!answer.error) words.append(h("span", {}, answer.subtask ?? dash));
    const go = this.seek ? { click: () => this.seek(answer.step) } : {};
    const cells = [String(answer.step), answer.at_s ? time(answer.at_s) : dash, null, answer.nominated.join(", "), percent(answer.confidence), number(answer.ms, 0, " ms")];
    const row = h("tr", { class: answer.error ? "failed" : "", on: go }, cells.map((cell) => (cell === null ? words : h("td"))));
    cells.forEach((cell, i) => cell !== null && text(row.children[i], cell));
    return row;
  }
}
