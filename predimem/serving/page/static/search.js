// A search among all keyframes, by the words of a subtask and by an image that is dropped in.

import { json } from "./api.js";
import { h, text } from "./dom.js";
import { keyframe } from "./robot.js";
import { ago } from "./words.js";

const SIDE = 128; // pixels: what the tower looks at is not larger
const LONGEST = 6000; // characters of an image: addresses have to stay below 8 KiB
const QUALITIES = [0.9, 0.8, 0.7, 0.6, 0.45, 0.3];

export class SearchView {
  constructor() {
    this.words = h("input", { type: "search", placeholder: "Words of a subtask, such as drawer", "aria-label": "Words of a subtask" });
    this.robot = h("select", { "aria-label": "Robot" }, h("option", { value: "" }, "all robots"));
    this.camera = h("select", { "aria-label": "Camera of the image", hidden: true });
    this.file = h("input", { type: "file", accept: "image/*", "aria-label": "An image", hidden: true });
    this.preview = h("img", { alt: "The image that is looked for", hidden: true });
    this.hint = h("span", {}, "Drop an image here, or choose one");
    this.drop = h("label", { class: "drop" }, this.preview, this.hint, this.file);
    this.clear = h("button", { class: "ghost", type: "button", hidden: true, on: { click: () => this.forget() } }, "Without the image");
    this.said = h("p", { class: "quiet", role: "status" });
    this.found = h("div", { class: "results" });
    this.element = h("article", { class: "episode search" }, h("div", { class: "head" }, h("h1", {}, "Search what robots remember")), h("section", { class: "card" }, h("div", { class: "ask" }, this.words, this.robot, this.camera, this.clear), this.drop), this.said, this.found);
    this.image = null;
    this.asked = 0;
    this.words.addEventListener("input", () => this.soon());
    for (const choice of [this.robot, this.camera]) choice.addEventListener("change", () => this.look());
    this.file.addEventListener("change", () => this.file.files.length && this.take(this.file.files[0]));
    this.drop.addEventListener("dragover", (event) => event.preventDefault());
    this.drop.addEventListener("drop", (event) => {
      event.preventDefault();
      const [file] = event.dataTransfer.files;
      if (file) this.take(file);
    });
  }

  async begin() {
    document.title = "Search · PrediMem";
    try {
      const robots = await json("/page/robots.json");
      this.robot.append(...robots.map(({ robot }) => h("option", { value: robot }, robot)));
    } catch (error) {
      text(this.said, error.message);
    }
    await this.look();
  }

  soon() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.look(), 250);
  }

  async take(file) {
    this.file.value = ""; // so that the same file can be chosen again
    try {
      this.image = await small(file);
    } catch {
      this.image = null;
      text(this.said, `${file.name} is no image that this browser can read.`);
      return;
    }
    URL.revokeObjectURL(this.preview.src);
    this.preview.src = URL.createObjectURL(file);
    this.shown(true);
    await this.look();
  }

  forget() {
    this.image = null;
    this.shown(false);
    this.look();
  }

  shown(there) {
    this.preview.hidden = !there;
    this.clear.hidden = !there;
    this.camera.hidden = !there;
    text(this.hint, there ? "The keyframes that look most like it come first" : "Drop an image here, or choose one");
  }

  async look() {
    const wanted = new URLSearchParams();
    if (this.words.value.trim()) wanted.set("subtask", this.words.value.trim());
    if (this.robot.value) wanted.set("robot", this.robot.value);
    if (this.image) {
      wanted.set("camera", this.camera.value);
      wanted.set("image", this.image.split(",")[1].replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""));
    }
    const turn = ++this.asked;
    try {
      const told = await json(`/page/search.json?${wanted}`);
      if (turn === this.asked) this.draw(told);
    } catch (error) {
      if (turn === this.asked) this.draw({ keyframes: [], cameras: null, why: error.message });
    }
  }

  draw({ keyframes, cameras, why }) {
    if (cameras && !this.camera.options.length) this.camera.append(...cameras.map((name) => h("option", { value: name }, name)));
    this.drop.hidden = cameras?.length === 0;
    const now = Date.now() / 1000;
    const cards = keyframes.map((found) => {
      const like = found.similarity === null ? "" : `similarity ${found.similarity.toFixed(2)}`;
      return keyframe(found, h("b", { class: "label" }, found.subtask ?? "no subtask"), h("span", { class: "caption" }, h("span", {}, found.robot), h("span", {}, [like, ago(now - found.at_s)].filter(Boolean).join(" · "))));
    });
    this.found.replaceChildren(...cards);
    text(this.said, why ? (this.image || !cards.length ? why : `Images cannot be searched for: ${why}`) : cards.length ? "" : "Nothing was found.");
  }
}

/** The image as a JPEG of at most `SIDE` pixels a side, as a data: address. */
async function small(file) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = h("canvas", { width: Math.max(1, Math.round(bitmap.width * scale)), height: Math.max(1, Math.round(bitmap.height * scale)) });
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  for (const quality of QUALITIES) {
    const made = canvas.toDataURL("image/jpeg", quality);
    if (made.length <= LONGEST) return made;
  }
  throw new Error("the image is too detailed");
}
