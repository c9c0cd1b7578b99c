// Which earlier session the planner sees in this episode, and why.

import { h, list, text } from "./dom.js";
import { hash } from "./sidebar.js";
import { ago } from "./words.js";

export class Recalled {
  constructor() {
    this.why = h("p", {});
    this.rows = h("tbody");
    const heads = ["", "session", "told", "similarity", "view", "instruction", "age"];
    this.element = h("section", { class: "card recalled", hidden: true }, h("h2", {}, "Earlier sessions"), this.why, h("table", { class: "sessions" }, h("thead", {}, h("tr", {}, heads.map((head) => h("th", {}, head)))), this.rows));
  }

  /** told: as `predimem.serving.recalled.plain` gives it, or null. */
  draw(told) {
    this.element.hidden = !told;
    if (!told) return;
    text(this.why, told.matches.some((match) => match.admitted) ? `The planner sees one: ${told.why}.` : `The planner sees none: ${told.why}.`);
    list(this.rows, told.matches, (match) => match.name, row);
  }
}

function row(match) {
  const name = match.episode_id ? h("a", { class: "link", href: hash("past", match.episode_id) }, match.name) : match.name;
  const cells = [match.admitted ? "shown" : "", name, match.instruction, match.similarity.toFixed(2), match.view.toFixed(2), match.text.toFixed(2), ago(match.age_s)];
  return h("tr", { class: match.admitted ? "current" : "" }, cells.map((cell) => h("td", {}, cell)));
}
