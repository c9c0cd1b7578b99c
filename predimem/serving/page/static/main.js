// What is shown, and when the server is asked again.

import { Failed, Refused, json, liveAddress, pastAddress, useKey } from "./api.js";
import { h, list, text } from "./dom.js";
import { LiveView } from "./live.js";
import { PastView } from "./past.js";
import { RobotView } from "./robot.js";
import { SearchView } from "./search.js";
import { drawLive, drawPast, drawRobots, hash } from "./sidebar.js";

const EVERY_MS = 300; // between two looks at a live episode
const PATIENT_MS = 1500; // where nothing live is shown
const PAST_EVERY_MS = 5000;
const ROBOTS_EVERY_MS = 30000; // counts all that is kept
const byId = (id) => document.getElementById(id);

let view = null;
let route = { kind: "", id: "", step: null };
let past = { episodes: [], asked: -Infinity };
let robots = { list: [], asked: -Infinity };
let overview = null;

function readRoute() {
  const [, kind = "", id = "", step = ""] = location.hash.split("/");
  return { kind, id: decodeURIComponent(id), step: /^\d+$/.test(step) ? Number(step) : null };
}

function show(made) {
  view?.stop?.();
  view = made;
  byId("main").replaceChildren(made.element);
  made.begin?.();
}

function message(title, words) {
  if (view?.message === title) return;
  document.title = "PrediMem";
  show({ message: title, element: h("div", { class: "welcome" }, h("h1", {}, title), h("p", {}, words)) });
}

function drawState(word, kind) {
  text(byId("state"), word);
  byId("state").className = `pill ${kind}`;
}

function drawServer() {
  const { state, ready, queues, refused, restarts, sessions } = overview;
  drawState(state === "ok" ? "serving" : state, state === "ok" ? "good" : ready ? "warn" : "bad");
  const facts = [
    ["sessions", sessions.length, "Sessions in memory"],
    ["S1 queue", queues.s1, "Observations that wait for the actor"],
    ["S2 queue", queues.s2, "Snapshots that wait for the planner"],
    ["refused", refused, "Requests without actions since the server began"],
    ["S2 restarts", restarts, "Planner processes that were lost"],
  ];
  list(byId("server"), facts, ([name]) => name, ([name, , title]) => h("div", { title }, h("dt", {}, name), h("dd")), (element, [, value]) => text(element.lastChild, String(value)));
}

async function look() {
  const live = route.kind === "live" ? route.id : "";
  const told = await json(liveAddress(live)).catch((error) => {
    if (!(live && error instanceof Failed && error.status === 404)) throw error;
    return json(liveAddress(""));
  });
  overview = told.overview;
  drawServer();
  if (live !== (route.kind === "live" ? route.id : "")) return;
  if (live && told.episode) {
    if (!(view instanceof LiveView && view.id === live)) show(new LiveView(live, overview, byId("large")));
    view.draw(told.episode);
  } else if (live) {
    if (overview.keeps) location.replace(hash("past", live));
    else message("This session has ended", "Nothing of it is kept, since the server runs without --state-dir.");
  } else if (route.kind === "robot") {
    if (view?.robot !== route.id) show(new RobotView(route.id));
  } else if (route.kind === "search") {
    if (!(view instanceof SearchView)) show(new SearchView());
  } else if (route.kind !== "past") welcome();
}

function welcome() {
  const [first] = [...overview.sessions].sort((a, b) => a.idle_s - b.idle_s);
  if (first) location.replace(hash("live", first.id));
  else message("Waiting for a robot", "Episodes appear here as soon as a robot sends its first observation.");
}

async function openPast() {
  const asked = route.id;
  try {
    const episode = await json(pastAddress(asked));
    if (route.kind === "past" && route.id === asked) show(new PastView(episode, overview.server.control_hz, overview.sessions.some((session) => session.id === asked), route.step));
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    message("This episode is not kept", "It may have made room for newer ones.");
  }
}

async function tick() {
  if (performance.now() - past.asked > PAST_EVERY_MS) {
    past = { episodes: await json("/page/past.json"), asked: performance.now() };
  }
  if (performance.now() - robots.asked > ROBOTS_EVERY_MS) {
    robots = { list: await json("/page/robots.json"), asked: performance.now() };
  }
  await look();
  if (route.kind === "past" && view?.episode?.id !== route.id && !view?.message) await openPast();
  drawLive(overview.sessions, route);
  drawPast(past.episodes, overview.keeps, route);
  drawRobots(robots.list, route);
}

function login(why) {
  text(byId("login-error"), why);
  if (!byId("login").open) byId("login").showModal();
  return new Promise((resolve) => byId("login").addEventListener("close", resolve, { once: true }));
}

async function run() {
  for (;;) {
    const began = performance.now();
    let pause = route.kind === "live" ? EVERY_MS : PATIENT_MS;
    try {
      await tick();
    } catch (error) {
      if (error instanceof Refused) {
        useKey("");
        drawState("locked", "warn");
        await login(error.message);
        pause = 0;
      } else {
        drawState(error instanceof Failed ? error.message : "no connection", "bad");
        if (!(error instanceof Failed || error instanceof TypeError || error instanceof DOMException)) console.error(error);
        pause = PATIENT_MS;
      }
    }
    await rest(Math.max(pause, performance.now() - began)); // never more than half the time
  }
}

let wake = () => {};

/** Until then, or until something is clicked; and for as long as nobody looks. */
async function rest(ms) {
  await new Promise((resolve) => {
    wake = resolve;
    setTimeout(resolve, ms);
  });
  while (document.hidden) await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("predimem-theme", theme);
}

function begin() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = localStorage.getItem("predimem-theme") ?? (dark ? "dark" : "light");
  byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  byId("login").addEventListener("cancel", (event) => event.preventDefault());
  byId("login").firstElementChild.addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(byId("key").value.trim());
    byId("key").value = "";
    byId("login").close();
  });
  byId("large").addEventListener("click", (event) => event.target === byId("large") && byId("large").close());
  byId("filter").addEventListener("input", () => overview && drawPast(past.episodes, overview.keeps, route));
  addEventListener("keydown", (event) => view?.key?.(event));
  addEventListener("hashchange", () => {
    route = readRoute();
    if (view?.message) view = null;
    if (route.kind === "past" && view?.episode?.id === route.id && route.step !== null) view.seek(route.step);
    wake();
  });
  route = readRoute();
  run();
}

begin();
