// The keyframe bank: what the robot remembers, oldest first.

import { h, list, text } from "./dom.js";
import { show } from "./images.js";
import { clock } from "./words.js";

/** `address(step, camera)`: of an image; `open(step)`: a click on a frame. */
export class Filmstrip {
  constructor(cameras, address, hz, open) {
    Object.assign(this, { cameras, address, hz, open });
    this.strip = h("ol", { class: "strip" });
    this.empty = h("p", { class: "quiet" }, "Nothing yet. The planner nominates frames that it will need later.");
    this.element = h("div", { class: "film" }, this.strip, this.empty);
    this.last = null;
  }

  /** clusters: as `clustersAt` gives them. */
  draw(steps, current = null, clusters = new Map()) {
    list(this.strip, steps, (step) => step, (step) => this.frame(step), (frame, step) => {
      frame.classList.toggle("current", step === current);
      const moves = clusters.get(step)?.moves ?? [];
      text(frame.querySelector(".moved"), moves.length ? `moved from ${moves.at(-1).from.join(", ")}` : "");
    });
    this.empty.hidden = steps.length > 0;
    const newest = steps.at(-1) ?? null;
    if (newest !== this.last && newest !== null) this.strip.scrollLeft = this.strip.scrollWidth;
    this.last = newest;
  }

  frame(step) {
    const images = this.cameras.map((camera, place) => {
      const image = h("img", { alt: `${camera} at step ${step}`, draggable: "false" });
      show(image, this.address(step, place));
      return image;
    });
    const button = h("button", { title: `step ${step}`, on: { click: () => this.open(step) } }, h("span", { class: "images" }, images));
    button.append(h("span", { class: "caption" }, h("b", {}, `step ${step}`), h("span", {}, clock(step / this.hz))), h("span", { class: "moved" }));
    return h("li", {}, button);
  }
}

/** A keyframe at full size, over the page. */
export function enlarge(dialog, cameras, address, step, hz) {
  const figures = cameras.map((camera, place) => {
    const image = h("img", { alt: camera });
    show(image, address(step, place));
    return h("figure", {}, image, h("figcaption", {}, camera));
  });
  const title = h("h2", {});
  text(title, `Keyframe of step ${step}, ${clock(step / hz)}`);
  dialog.replaceChildren(title, h("div", { class: "figures" }, figures), h("button", { on: { click: () => dialog.close() } }, "Close"));
  dialog.showModal();
}
