// What is kept of a robot: its sessions, their episodes and keyframes, and what was written about them.

import { json } from "./api.js";
import { h } from "./dom.js";
import { show } from "./images.js";
import { hash } from "./sidebar.js";
import { ago, moment } from "./words.js";

export const robotAddress = (robot) => `/page/robots/${encodeURIComponent(robot)}.json`;

/** A keyframe that leads to its step in the episode; `under`: what stands below it. */
export function keyframe(found, ...under) {
  const images = found.images.map((address, i) => {
    const image = h("img", { alt: `${found.cameras[i]} at step ${found.step}`, draggable: "false" });
    show(image, address);
    return image;
  });
  return h("a", { class: "found", href: hash("past", found.episode_id, found.step), title: `${found.episode_id}, step ${found.step}` }, h("span", { class: "images" }, images), under);
}

/** What was written, newest last. */
export function notes(written) {
  return written.length ? h("ul", { class: "notes" }, written.map((note) => h("li", {}, h("span", { class: "quiet" }, [moment(note.at_s), note.author].filter(Boolean).join(", ")), " ", note.text))) : null;
}

function episode(told, written) {
  const title = h("a", { class: "link", href: hash("past", told.episode_id) }, told.instruction);
  const badge = h("span", { class: `badge ${told.outcome ?? ""}` }, told.outcome ?? "past");
  const strip = h("div", { class: "strip" }, told.keyframes.map((found) => keyframe(found, h("span", { class: "caption" }, h("b", {}, `step ${found.step}`), h("span", {}, found.subtask ?? "")))));
  return h("li", {}, h("p", { class: "sub" }, badge, h("b", {}, title), h("span", {}, moment(told.began_s)), h("code", {}, told.episode_id)), told.keyframes.length ? strip : h("p", { class: "quiet" }, "The planner nominated no keyframe."), notes(written));
}

function session(told, now) {
  const own = told.notes.filter((note) => note.episode_id === null);
  const facts = `${told.episodes.length} episode${told.episodes.length === 1 ? "" : "s"}, ${told.keyframes} images kept, last used ${ago(now - told.used_s)}`;
  return h("section", { class: "card" }, h("h2", {}, `Session ${told.session} · ${facts}`), notes(own), h("ol", { class: "episodes" }, told.episodes.map((one) => episode(one, told.notes.filter((note) => note.episode_id === one.episode_id)))));
}

export class RobotView {
  constructor(robot) {
    this.robot = robot;
    this.element = h("article", { class: "episode robot" }, h("div", { class: "head" }, h("h1", {}, robot), h("p", { class: "sub" }, "What is kept of it")));
  }

  async begin() {
    document.title = `${this.robot} · PrediMem`;
    try {
      const told = await json(robotAddress(this.robot));
      const now = Date.now() / 1000;
      this.element.append(...[notes(told.notes), ...told.sessions.map((one) => session(one, now))].filter(Boolean));
    } catch (error) {
      this.element.append(h("p", { class: "error" }, error.message || "The robot cannot be shown."));
    }
  }
}
