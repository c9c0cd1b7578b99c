// An episode that is kept: one can go back and forth in it.

import { Answers } from "./answers.js";
import { json } from "./api.js";
import { Charts, Rows } from "./charts.js";
import { h, text } from "./dom.js";
import { Filmstrip } from "./filmstrip.js";
import { icon } from "./icons.js";
import { cameraViews } from "./live.js";
import { prepare, show } from "./images.js";
import { notes } from "./robot.js";
import { hash } from "./sidebar.js";
import { linkButton, recordingButton } from "./share.js";
import { Timeline } from "./timeline.js";
import { Why, clustersAt } from "./why.js";
import { at, clock, dash, hues, moment, percent, time } from "./words.js";

const NEAR = 3; // images on both sides that are made ready
const PLAY_MS = 50;
const AROUND = 4; // answers on both sides of the current one that are listed
const ADDRESS_MS = 250; // browsers refuse to change the address too often
const NO_ROWS = "No state and no actions of this episode are kept: it was played with an earlier version, or with state: {trajectory: false}.";

export class PastView {
  /** step: where it opens; at its end where that is null. */
  constructor(episode, hz, live, step = null) {
    this.episode = episode;
    this.said = episode.answers.map(([at, confidence, ms], i) => said(episode, i, at, confidence, ms));
    this.hz = hz;
    this.hues = hues(episode.spans);
    this.images = episode.images.map((step) => [step]);
    this.start = Math.min(0, ...episode.images.slice(0, 1)); // a conditioning video has steps below 0
    this.cameraViews = cameraViews(episode.cameras);
    this.subtask = h("p", { class: "subtask" });
    this.meter = h("i");
    this.sure = h("b", {}, dash);
    this.place = h("span", { class: "place" });
    this.shown = h("p", { class: "note" });
    this.count = h("span", { class: "count" });
    this.timeline = new Timeline((step) => this.seek(step));
    const seek = (step) => this.seek(step);
    this.charts = new Charts(seek);
    this.answers = new Answers(seek);
    this.why = new Why(episode.own_memory);
    this.rows = new Rows();
    this.film = new Filmstrip(episode.cameras, (step, camera) => this.image(step, camera), hz, (step) => this.seek(step));
    this.slider = h("input", { type: "range", min: String(this.start), max: String(episode.end), "aria-label": "Control step" });
    this.slider.addEventListener("input", () => this.seek(Number(this.slider.value)));
    this.playing = h("button", { class: "play", "aria-label": "Play or pause", on: { click: () => this.toggle() } }, icon("play"));
    const jump = (name, title, go) => h("button", { class: "ghost", title, "aria-label": title, on: { click: go } }, icon(name));
    this.element = h(
      "article",
      { class: "episode past" },
      h("div", { class: "head" }, h("h1", {}, episode.instruction), h("p", { class: "sub" }, h("span", { class: `badge ${episode.outcome ?? ""}` }, episode.outcome ?? "past"), h("span", { class: "began" }, episode.began_s ? `began ${moment(episode.began_s)}` : ""), h("code", {}, episode.id), h("a", { class: "link", href: hash("robot", episode.robot) }, `all of ${episode.robot}`), this.place), this.actions(live), h("p", { class: "warning" }, episode.warning), h("p", { class: "slow" }, episode.slow)),
      h(
        "div",
        { class: "now" },
        this.cameraViews.element,
        h(
          "section",
          { class: "card", "aria-label": "At this step" },
          h("h2", {}, "Subtask at this step"),
          this.subtask,
          h("div", { class: "confidence" }, h("span", {}, "S2's confidence"), h("span", { class: "meter" }, this.meter), this.sure),
          h(
            "div",
            { class: "controls" },
            jump("first", "The keyframe before", () => this.jump(this.marks(), -1)),
            jump("previous", "The image before (left arrow)", () => this.jump(episode.images, -1)),
            this.playing,
            jump("next", "The next image (right arrow)", () => this.jump(episode.images, 1)),
            jump("last", "The next keyframe", () => this.jump(this.marks(), 1)),
          ),
          this.slider,
          this.shown,
        ),
      ),
      h("section", { class: "card" }, h("h2", {}, "Subtasks, confidence, keyframes"), this.timeline.element),
      h("section", { class: "card" }, h("h2", {}, "Remembered at this step ", this.count), this.film.element, this.why.element),
      episode.notes.length > 0 && h("section", { class: "card" }, h("h2", {}, "Notes"), notes(episode.notes)),
      this.answers.element,
      this.charts.motion,
      this.charts.speed,
    );
    this.step = step ?? episode.end;
  }

  actions(live) {
    const { id } = this.episode;
    const watch = live && h("a", { class: "act", href: hash("live", id) }, "Watch it live");
    return h("p", { class: "actions" }, watch, linkButton(() => hash("past", id, this.step)), recordingButton(id));
  }

  /** Called when the element is in the page. */
  begin() {
    const { spans, answers, end, clock, instruction, began_s, outcome, trajectory } = this.episode;
    document.title = [outcome ?? "past", began_s && moment(began_s), instruction, "PrediMem"].filter(Boolean).join(" · ");
    this.timeline.draw({ spans, answers, keyframes: this.marks(), end, hz: this.hz, step: this.step, clock });
    this.seek(this.step);
    this.drawCharts(trajectory ? "" : NO_ROWS);
    if (trajectory) this.load();
  }

  async load() {
    try {
      this.rows.add(await json(`/page/past/${this.episode.key}/trajectory`));
      this.drawCharts("");
    } catch (error) {
      this.drawCharts(`State and actions cannot be shown: ${error.message}`);
    }
  }

  drawCharts(why) {
    const { episode, rows, hz, step } = this;
    this.charts.draw({ first: 0, last: episode.end, step, hz, rows, answers: episode.answers, why });
  }

  /** All frames that were keyframes at some time. */
  marks() {
    this.all ??= [...new Set(this.episode.keyframes.flatMap(([, steps]) => steps))].sort((a, b) => a - b);
    return this.all;
  }

  image(step, camera) {
    return `/page/past/${this.episode.key}/${step}/${encodeURIComponent(this.episode.cameras[camera])}.png`;
  }

  seek(step) {
    const { episode } = this;
    this.step = Math.min(episode.end, Math.max(this.start, step));
    this.slider.value = String(this.step);
    this.timeline.drawn.step = this.step;
    this.timeline.move(this.step);
    const subtask = at(episode.spans, this.step)?.[1] ?? null;
    text(this.subtask, subtask ?? "no subtask yet");
    this.subtask.className = `subtask ${this.hues.get(subtask) ?? "none"}`;
    const sure = at(episode.answers, this.step)?.[1] ?? null;
    this.meter.style.setProperty("width", `${100 * (sure ?? 0)}%`);
    text(this.sure, percent(sure));
    const when = at(episode.clock, this.step)?.[1];
    text(this.place, [`step ${this.step} of ${episode.end}`, clock(this.step / this.hz), when && time(when)].filter(Boolean).join(" · "));
    const held = at(episode.keyframes, this.step)?.[1] ?? [];
    text(this.count, held.length ? String(held.length) : "");
    const clusters = clustersAt(episode.clusters, this.step);
    this.why.draw(clusters, held);
    this.charts.move(this.step);
    this.drawAnswers();
    this.drawImages(held, clusters);
    this.remember();
  }

  drawAnswers() {
    const past = this.said.findIndex(({ step }) => step > this.step);
    const place = (past < 0 ? this.said.length : past) - 1;
    const first = Math.max(0, Math.min(place - AROUND, this.said.length - 2 * AROUND - 1));
    this.answers.draw(this.said.slice(first, first + 2 * AROUND + 1), this.said[place] ?? null);
  }

  /** Keeps the step in the address, so that it can be copied from there too. */
  remember() {
    clearTimeout(this.remembering);
    this.remembering = setTimeout(() => {
      if (this.element.isConnected) history.replaceState(null, "", hash("past", this.episode.id, this.step));
    }, ADDRESS_MS);
  }

  drawImages(held, clusters) {
    const found = at(this.images, this.step)?.[0] ?? this.episode.images[0];
    this.film.draw(held, found, clusters);
    if (found === undefined) {
      text(this.shown, "No image of this episode is kept.");
      return;
    }
    text(this.shown, found === this.step ? `Image of this step` : `Image of step ${found}, the last one that is kept`);
    this.cameraViews.images.forEach((image, camera) => show(image, this.image(found, camera)));
    const place = this.episode.images.indexOf(found);
    for (const near of this.episode.images.slice(Math.max(0, place - NEAR), place + NEAR + 1))
      this.episode.cameras.forEach((_, camera) => prepare(this.image(near, camera)));
  }

  jump(steps, way) {
    const next = way > 0 ? steps.find((step) => step > this.step) : steps.findLast((step) => step < this.step);
    if (next !== undefined) this.seek(next);
  }

  toggle() {
    if (this.timer) return this.stop();
    if (this.step >= this.episode.end) this.seek(this.start);
    this.playing.replaceChildren(icon("pause"));
    const steps = Math.max(1, Math.round((this.hz * PLAY_MS) / 1000));
    this.timer = setInterval(() => (this.step >= this.episode.end ? this.stop() : this.seek(this.step + steps)), PLAY_MS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.playing.replaceChildren(icon("play"));
  }

  key(event) {
    const ways = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.target instanceof HTMLInputElement || !(event.key in ways)) return;
    event.preventDefault();
    this.jump(this.episode.images, ways[event.key]);
  }
}

/** One answer with its words. */
function said({ said, words }, i, step, confidence, ms) {
  const [at_s, subtask, nominated, text, error] = said[i];
  const word = (place) => (place === null ? null : words[place]);
  return { step, confidence, ms, at_s, nominated, subtask: word(subtask), text: word(text), error: word(error) };
}
