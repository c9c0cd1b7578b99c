// The lists at the side: sessions that are live, episodes that are kept.

import { h, list, text } from "./dom.js";
import { ago, moment } from "./words.js";

const IDLE_S = 3; // without an observation: the robot pauses, or is gone
const byId = (id) => document.getElementById(id);

/** The address of an episode, or of one of its steps. */
export function hash(kind, id, step = null) {
  return `#/${kind}/${encodeURIComponent(id)}${step === null ? "" : `/${step}`}`;
}

function entry(kind, item) {
  const title = h("b", {}, item.instruction ?? "");
  const line = h("span", { class: "line" });
  const began = h("span", { class: "began" });
  const foot = h("span", { class: "foot" }, h("code", {}, item.id), h("span", { class: "when" }));
  return h("li", {}, h("a", { href: hash(kind, item.id) }, h("span", { class: "dot" }), h("span", { class: "words" }, title, line, began, foot)));
}

function mark(element, item, route, kind) {
  element.firstChild.toggleAttribute("aria-current", route.kind === kind && route.id === item.id);
}

export function drawLive(sessions, route) {
  text(byId("live-count"), sessions.length ? String(sessions.length) : "");
  if (!sessions.length) {
    list(byId("live"), [0], () => "none", () => h("li", { class: "quiet" }, "No robot is connected."));
    return;
  }
  list(byId("live"), sessions.toReversed(), (session) => session.id, (session) => entry("live", session), (element, session) => {
    text(element.querySelector("b"), session.instruction ?? "");
    text(element.querySelector(".line"), session.subtask || "no subtask yet");
    text(element.querySelector(".began"), `began ${moment(session.began_s)}`);
    text(element.querySelector(".when"), session.idle_s > IDLE_S ? `idle ${Math.round(session.idle_s)} s` : `step ${session.step ?? 0}`);
    element.classList.toggle("idle", session.idle_s > IDLE_S);
    element.classList.toggle("trouble", (session.planner ?? "ok") !== "ok" || Boolean(session.warning || session.slow));
    mark(element, session, route, "live");
  });
}

export function drawRobots(robots, route) {
  text(byId("robots-count"), robots.length ? String(robots.length) : "");
  const made = ({ robot }) => h("li", {}, h("a", { href: hash("robot", robot) }, h("span", { class: "words" }, h("b", {}, robot), h("span", { class: "foot" }, h("span"), h("span", { class: "when" })))));
  list(byId("robots"), robots, ({ robot }) => robot, made, (element, { robot, sessions, keyframes, used_s }) => {
    text(element.querySelector(".foot").firstChild, `${sessions} session${sessions === 1 ? "" : "s"}, ${keyframes} images`);
    text(element.querySelector(".when"), ago(Date.now() / 1000 - used_s));
    element.firstChild.toggleAttribute("aria-current", route.kind === "robot" && route.id === robot);
  });
  byId("search").toggleAttribute("aria-current", route.kind === "search");
}

export function drawPast(episodes, keeps, route) {
  const wanted = byId("filter").value.trim().toLowerCase();
  const items = episodes.map((episode) => ({ ...episode, id: episode.episode_id }));
  const shown = items.filter((item) => `${item.instruction} ${item.id}`.toLowerCase().includes(wanted));
  text(byId("past-count"), items.length ? String(items.length) : "");
  byId("filter").hidden = items.length < 8;
  if (!items.length) {
    const why = keeps ? "None is kept yet." : "None is kept: the server runs without --state-dir.";
    list(byId("past"), [0], () => why, () => h("li", { class: "quiet" }, why));
    return;
  }
  const now = Date.now() / 1000;
  list(byId("past"), shown, (item) => item.id, (item) => entry("past", item), (element, item) => {
    text(element.querySelector("b"), item.instruction);
    text(element.querySelector(".began"), [moment(item.began_s), item.outcome].filter(Boolean).join(" · "));
    element.querySelector(".began").className = `began ${item.outcome ?? ""}`;
    text(element.querySelector(".when"), item.live ? "live" : ago(now - item.used_s));
    element.classList.toggle("live", item.live);
    mark(element, item, route, "past");
  });
}
