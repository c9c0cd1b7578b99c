// A session while it is played.

import { Answers } from "./answers.js";
import { json } from "./api.js";
import { Charts, Rows } from "./charts.js";
import { h, text } from "./dom.js";
import { Filmstrip, enlarge } from "./filmstrip.js";
import { show } from "./images.js";
import { Recalled } from "./recalled.js";
import { hash } from "./sidebar.js";
import { linkButton, recordingButton } from "./share.js";
import { Timeline } from "./timeline.js";
import { Why, clustersAt } from "./why.js";
import { clock, dash, hues, moment, number, percent, time } from "./words.js";

const RECENT_STEPS = 2400; // what the timeline shows of a long episode
const ROWS_EVERY_MS = 900; // between two looks at state and actions
const NO_STORE = "The server runs without --state-dir, so steps cannot be linked to, and there is no file.";

export function cameraViews(cameras) {
  const images = cameras.map((camera) => h("img", { alt: camera, draggable: "false" }));
  const figures = images.map((image, i) => h("figure", {}, image, h("figcaption", {}, cameras[i])));
  return { images, element: h("section", { class: "cameras", "aria-label": "Cameras" }, figures) };
}

export function fact(name, title) {
  const value = h("dd", {}, dash);
  return { value, element: h("div", { title }, h("dt", {}, name), value) };
}

export class LiveView {
  constructor(id, { server, keeps }, large) {
    this.id = id;
    this.cameras = server.cameras;
    this.hz = server.control_hz;
    this.cameraViews = cameraViews(this.cameras);
    this.title = h("h1");
    this.badge = h("span", { class: "badge live" }, "live");
    this.place = h("span", { class: "place" });
    this.subtask = h("p", { class: "subtask", "aria-live": "polite" });
    this.note = h("p", { class: "note" });
    this.began = h("span", { class: "began" });
    this.warning = h("p", { class: "warning", role: "status" });
    this.slow = h("p", { class: "slow", role: "status" });
    this.meter = h("i");
    this.sure = h("b", {}, dash);
    this.facts = {
      age: fact("plan age", "Control steps since the observation that the subtask was decided on"),
      observations: fact("robot", "Observations a second, and what the robot's control rate is"),
      s1: fact("S1, actor", "Action chunks a second, and the time of one"),
      s2: fact("S2, planner", "Plans a second, and the time of one"),
      actions: fact("actions", "Whether the robot carries out the current subtask"),
      kept: fact("keyframes", "Frames in the bank"),
    };
    this.timeline = new Timeline();
    this.charts = new Charts();
    this.answers = new Answers();
    this.recalled = new Recalled();
    this.rows = new Rows();
    this.asked = -Infinity;
    const address = (step, camera) => this.image(step, camera);
    this.film = new Filmstrip(this.cameras, address, this.hz, (step) => enlarge(large, this.cameras, address, step, this.hz));
    this.count = h("span", { class: "count" });
    this.element = h(
      "article",
      { class: "episode" },
      h("div", { class: "head" }, this.title, h("p", { class: "sub" }, this.badge, this.began, h("code", {}, id), this.place), this.actions(keeps), this.warning, this.slow),
      h(
        "div",
        { class: "now" },
        this.cameraViews.element,
        h(
          "section",
          { class: "card", "aria-label": "Now" },
          h("h2", {}, "Current subtask"),
          this.subtask,
          h("div", { class: "confidence" }, h("span", {}, "S2's confidence"), h("span", { class: "meter" }, this.meter), this.sure),
          h("dl", { class: "grid" }, Object.values(this.facts).map((made) => made.element)),
          this.note,
        ),
      ),
      h("section", { class: "card" }, h("h2", {}, "Subtasks, confidence, keyframes"), this.timeline.element),
      (this.bank = h("section", { class: "card" }, h("h2", {}, "Keyframe bank ", this.count), this.film.element)),
      this.recalled.element,
      this.answers.element,
      this.charts.motion,
      this.charts.speed,
    );
  }

  actions(keeps) {
    if (!keeps) return h("p", { class: "actions quiet" }, NO_STORE);
    const address = () => hash("past", this.id, this.step ?? 0);
    return h("p", { class: "actions" }, h("a", { class: "act", href: hash("past", this.id) }, "Go back in it"), linkButton(address), recordingButton(this.id));
  }

  image(step, camera) {
    return `/page/live/${encodeURIComponent(this.id)}/${this.run}/${step}/${camera}.jpg`;
  }

  draw(episode) {
    if (this.run !== episode.run) {
      this.film.strip.replaceChildren();
      this.answers.rows.replaceChildren();
      this.rows = new Rows();
      this.asked = -Infinity;
    }
    this.run = episode.run;
    this.step = episode.step;
    if (!this.why) {
      this.why = new Why(episode.own_memory);
      this.bank.append(this.why.element);
    }
    document.title = `live since ${moment(episode.began_s)} · ${episode.instruction ?? ""} · PrediMem`;
    text(this.began, `began ${moment(episode.began_s)}`);
    text(this.slow, episode.slow ?? "");
    text(this.title, episode.instruction ?? "");
    text(this.warning, episode.warning ?? "");
    const idle = episode.idle_s > 3;
    this.badge.className = `badge ${idle ? "idle" : "live"}`;
    text(this.badge, idle ? `idle for ${Math.round(episode.idle_s)} s` : "live");
    if (episode.step === null) return;
    text(this.place, `step ${episode.step} · ${clock(episode.step / this.hz)} · ${time(episode.at_s)}`);
    this.cameraViews.images.forEach((image, camera) => show(image, this.image(episode.step, camera)));
    this.drawNow(episode);
    const first = Math.max(0, episode.step - RECENT_STEPS);
    this.first = first;
    this.drawCharts(episode);
    this.more();
    this.timeline.draw({
      clock: this.rows.steps.map((step, i) => [step, this.rows.at_s[i]]),
      first,
      end: episode.step,
      step: episode.step,
      hz: this.hz,
      spans: clip(episode.spans, first),
      answers: episode.answers.filter(([step]) => step >= first),
      keyframes: episode.keyframes.filter((step) => step >= first),
    });
    const clusters = clustersAt(episode.clusters, episode.step);
    this.why.draw(clusters, episode.keyframes);
    this.film.draw(episode.keyframes, null, clusters);
    this.recalled.draw(episode.recalled);
    this.answers.draw(episode.said.toReversed());
    text(this.count, episode.keyframes.length ? String(episode.keyframes.length) : "");
  }

  drawCharts(episode) {
    if (performance.now() - this.asked < ROWS_EVERY_MS) return;
    const { first, rows, hz } = this;
    const answers = episode.answers.filter(([step]) => step >= first);
    this.charts.draw({ first, last: episode.step, step: episode.step, hz, rows, answers });
  }

  /** The observations since the last time. */
  async more() {
    const { run, rows, first } = this;
    if (this.asking || performance.now() - this.asked < ROWS_EVERY_MS) return;
    this.asking = true;
    this.asked = performance.now();
    try {
      const told = await json(`/page/live/${encodeURIComponent(this.id)}/${run}/from/${Math.max(first, rows.next)}`);
      if (this.rows === rows) rows.add(told, first);
    } catch {
      this.asked = performance.now(); // the next look at the session says what the matter is
    } finally {
      this.asking = false;
    }
  }

  drawNow(episode) {
    text(this.subtask, episode.subtask ?? "no subtask yet");
    this.subtask.className = `subtask ${hues(episode.spans).get(episode.subtask) ?? "none"}`;
    this.meter.style.setProperty("width", `${100 * (episode.confidence ?? 0)}%`);
    text(this.sure, percent(episode.confidence));
    const age = episode.plan_age_steps;
    text(this.facts.age.value, age === null ? dash : `${age} step${age === 1 ? "" : "s"} · ${clock(age / this.hz)}`);
    text(this.facts.observations.value, `${number(episode.observations_hz, 1)} of ${this.hz} Hz`);
    text(this.facts.s1.value, `${number(episode.s1_hz, 1)} Hz · ${number(episode.s1_ms, 0, " ms")}`);
    text(this.facts.s2.value, `${number(episode.s2_hz, 1)} Hz · ${number(episode.s2_ms, 0, " ms")}`);
    text(this.facts.actions.value, episode.held ? "held still" : episode.stale ? "of the last subtask" : "of this subtask");
    text(this.facts.kept.value, String(episode.keyframes.length));
    const planner = episode.planner && episode.planner !== "ok" ? `${episode.planner}; S1 goes on with this subtask` : "";
    const waiting = episode.held ? "The robot is held still until there is a plan." : "";
    text(this.note, planner || episode.plan_error || waiting);
  }
}

function clip(spans, first) {
  const inside = spans.filter(([start], i) => (spans[i + 1]?.[0] ?? Infinity) > first);
  return inside.map(([start, label]) => [Math.max(start, first), label]);
}
