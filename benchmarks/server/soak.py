"""Soaks the server: a few robots come, play, begin again and go, the page is open, and memory is read all the time.

Each robot connects, plays an episode, plays another one under the same name (`reset`), closes the connection and comes
back with a new name. The page is either what the page's scripts fetch, or with `--chromium` the page in a browser.
"""

from __future__ import annotations

import argparse
import csv
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from benchmarks.server import soak_report
from benchmarks.server.images import Views
from benchmarks.server.robots import refusal_code
from benchmarks.server.served import (
    Begun,
    anonymous_mib,
    cpu_s,
    paragraph,
    progress,
    resident_mib,
    shipped_server,
    table,
)
from tests.needs import find_browser
from tests.serving.support import ServerProcess, planner_pid

SAMPLE_S = 10.0  # over which memory is averaged
READING_S = 0.25
LOOK_S = 0.3  # as the page does
HORIZON = 4
FIELDS = (
    *("seconds", "server_mib", "s2_mib", "server_anonymous_mib", "s2_anonymous_mib", "server_cpu_s", "s2_cpu_s"),
    *("sessions", "replies", "episodes", "looks"),
)
IDLE_S = 60  # so that sessions that were left, and episodes on disk, come to their end during the warm-up already
EPISODES_KEPT = 20


def play(
    server: ServerProcess, robot: int, args: argparse.Namespace, count: Counter[str], stop: threading.Event
) -> None:
    """One robot, until `stop`."""
    visit, due_s = 0, time.monotonic() + robot * args.every_s / args.robots
    while not stop.is_set():
        client = WebsocketClientPolicy("127.0.0.1", server.port)
        views, name = Views(client.get_server_metadata()), f"robot-{robot}/{visit}"
        for turn in range(2):
            for request in range(args.requests):
                if stop.wait(max(0.0, due_s - time.monotonic())):
                    return
                due_s = max(due_s + args.every_s, time.monotonic())
                step = request * HORIZON
                fields = {"episode_id": name, "step": step, "reset": request == 0}
                try:
                    client.infer(views.at(robot, step, 2 * visit + turn) | fields)
                    count["replies"] += 1
                except RuntimeError as refusal:
                    count[f"refused: {refusal_code(refusal)}"] += 1
            count["episodes"] += 1
        client._ws.close()
        visit += 1


Work = list[Future[None]]


def look(server: ServerProcess, count: Counter[str], stop: threading.Event) -> None:
    """What an open page asks for. One that is not answered in 20 s, as where the machine stands still, is counted."""
    asked = 0
    while not stop.wait(LOOK_S):
        try:
            look_once(server, with_past=asked % 16 == 0)
            count["looks"] += 1
        except (TimeoutError, urllib.error.URLError):
            count["looks in vain"] += 1
        asked += 1


def look_once(server: ServerProcess, with_past: bool) -> None:
    """The newest episode with its images, and now and then the list of past ones."""
    sessions = json.loads(server.get("/page/live.json")[1])["overview"]["sessions"]
    if sessions:
        newest = min(sessions, key=lambda session: session["idle_s"])["id"]
        address = f"/page/live/{urllib.parse.quote(newest, safe='')}"
        status, told = server.get(f"{address}.json")
        episode = json.loads(told)["episode"] if status == 200 else {"step": None}  # 404: it has ended meanwhile
        for camera in range(2) if episode["step"] is not None else ():
            fetch(server, f"{address}/{episode['run']}/{episode['step']}/{camera}.jpg")
    if with_past:
        server.get("/page/past.json")


def fetch(server: ServerProcess, path: str) -> bytes:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=20) as answer:
            return answer.read()
    except urllib.error.HTTPError as gone:  # the session has ended meanwhile
        return gone.read()


@contextmanager
def browser(server: ServerProcess) -> Iterator[None]:
    """The page in Chromium, open."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"], timeout=120_000)
        chromium.new_page().goto(f"http://127.0.0.1:{server.port}/", timeout=120_000)
        yield
        chromium.close()


def sample(server: ServerProcess, minutes: float, count: Counter[str], file: Path, under_way: Work) -> None:
    """A row for every `SAMPLE_S` seconds, but while S2 is restarted or the server does not tell its sessions. Raises
    what ended the robots, and FileNotFoundError where the server has ended."""
    began_s = time.monotonic()
    with open(file, "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(FIELDS)
        for turn in range(int(minutes * 60 / SAMPLE_S)):
            for done in (work for work in under_way if work.done()):
                done.result()
            resident_mib(server.process.pid)
            until_s = began_s + (turn + 1) * SAMPLE_S
            try:
                row = means(server, until_s) | {"sessions": server.metric("predimem_sessions")}
            except (TimeoutError, urllib.error.URLError, FileNotFoundError, ProcessLookupError, ValueError):
                count["samples left out"] += 1
                time.sleep(max(0.0, until_s - time.monotonic()))
                continue
            row |= {"seconds": time.monotonic() - began_s}
            row |= {name: count[name] for name in ("replies", "episodes", "looks")}
            rows.writerow([round(row[name], 2) for name in FIELDS])
            out.flush()
            if turn % 30 == 0:
                progress(f"{turn * SAMPLE_S / 60:.0f} min: {json.dumps(row)}")


def means(server: ServerProcess, until_s: float) -> dict[str, float]:
    """Memory of both processes on average until then (`time.monotonic`), and the processor time that they have used.

    The server gives memory back every few seconds: a single reading in ten seconds would show where in that period it
    fell, which drifts over many minutes, and look like a slope.
    """
    pids = {"server": server.process.pid, "s2": planner_pid(server)}
    readings: dict[str, list[float]] = defaultdict(list)
    while True:
        for name, pid in pids.items():
            readings[f"{name}_mib"].append(resident_mib(pid))
            readings[f"{name}_anonymous_mib"].append(anonymous_mib(pid))
        if time.monotonic() >= until_s:
            break
        time.sleep(READING_S)
    found = {name: float(np.mean(values)) for name, values in readings.items()}
    return found | {f"{name}_cpu_s": cpu_s(pid) for name, pid in pids.items()}


def soak(args: argparse.Namespace, file: Path) -> Counter[str]:
    """Play for `args.minutes` and write the samples; what was counted."""
    count: Counter[str] = Counter()
    stop = threading.Event()
    folder = file.parent
    state = {"dir": str(folder / "state"), "episodes": EPISODES_KEPT}
    patient = {"timeout_s": 300.0}  # where others take the processor, S2 does not hang
    with shipped_server(folder, limits={"idle_s": IDLE_S}, state=state, s2_process=patient) as server:
        with ThreadPoolExecutor(args.robots + 1) as threads, browser(server) if args.chromium else nullcontext():
            work = [threads.submit(play, server, robot, args, count, stop) for robot in range(args.robots)]
            if not args.chromium:
                work.append(threads.submit(look, server, count, stop))
            try:
                sample(server, args.minutes, count, file, work)
            finally:
                stop.set()
        for done in work:
            done.result()
        count["restarts of S2"] = int(server.metric("predimem_s2_restarts_total"))
    return count


def used_s(counted: np.ndarray) -> float:
    """Processor time over the samples; a process that was restarted counts from 0 again."""
    return float(np.clip(np.diff(counted), 0, None).sum())


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--warm-up", type=float, default=10.0, help="minutes of a process before its slope")
    parser.add_argument("--robots", type=int, default=2)
    parser.add_argument("--every-s", type=float, default=0.8, help="between two requests of a robot")
    parser.add_argument("--requests", type=int, default=30, help="of an episode; a chunk of actions each")
    parser.add_argument("--chromium", action="store_true", help="the page in a browser instead of what it asks for")
    parser.add_argument("--folder", type=Path, default=Path("runs/server_soak"), help="samples, log and episodes")
    parser.add_argument("--again", action="store_true", help="report on the folder of a soak that is over")
    parser.add_argument("--plot", type=Path, default=Path("docs/images/server_soak.png"))


def run(args: argparse.Namespace) -> str:
    file, told = args.folder / "samples.csv", args.folder / "told.json"
    if not args.again:
        needed_min = soak_report.SHORTEST * SAMPLE_S / 60
        if args.minutes - args.warm_up < needed_min:
            raise SystemExit(
                f"a slope needs {needed_min:g} minutes after the warm-up of {args.warm_up:g}; --minutes more"
            )
        args.folder.mkdir(parents=True)
        begun = Begun.now()
        count = soak(args, file)
        told.write_text(json.dumps({"line": begun.line(), "count": count}))
    return report(soak_report.read(file), json.loads(told.read_text()), args)


def report(samples: dict[str, np.ndarray], told: dict[str, Any], args: argparse.Namespace) -> str:
    """Markdown; the plot beside it."""
    rows = soak_report.rows(samples, args.warm_up)
    soak_report.plot(samples, args.warm_up, args.plot)
    count = Counter(told["count"])
    passed_s = samples["seconds"][-1]
    cores = {name: used_s(samples[f"{name}_cpu_s"]) / passed_s for name in ("server", "s2")}
    refused = {name: n for name, n in count.items() if name.startswith("refused")}
    page = "in Chromium" if args.chromium else "as what its scripts ask for"
    blocks = ", ".join(f"{block * SAMPLE_S / 60:g}" for block in soak_report.BLOCKS)
    said = paragraph(
        f"""{told["line"]} {passed_s / 60:.0f} minutes, {args.robots} robots with the shipped weights, a request each
        {args.every_s:g} s and robot ({args.requests} an episode, {HORIZON} control steps on each time), the page open
        {page}, episodes on disk. Sessions without requests end after {IDLE_S} s and {EPISODES_KEPT} episodes are kept,
        so that both come and go. {count["replies"]} replies, {count["episodes"]} episodes, {count["looks"]} looks of
        the page ({count["looks in vain"]} more without an answer in 20 s), {sum(refused.values())} refusals
        {refused or ""}, {count["restarts of S2"]} restarts of S2; {samples["sessions"].max():.0f} sessions at most. The
        server used {cores["server"]:.2f} of a core, S2 {cores["s2"]:.2f}. {len(samples["seconds"])} samples, each the
        mean of {SAMPLE_S:g} s ({count["samples left out"]} left out, while the server or S2 did not answer)."""
    )
    how = paragraph(
        f"""The slope is that of least squares over the longest time in which a process was not restarted, without its
        first {args.warm_up:g} minutes. They are the warm-up, set before the run: all that comes and goes has done so
        several times by then. Samples that are close together are
        alike; `alike` is the time after which the correlation of the residuals has fallen below 1/e. The interval is a
        moving-block bootstrap of the residuals, the widest of those for blocks of {blocks} minutes. `in files` is what
        is mapped from files, such as torch's libraries, which the system can drop."""
    )
    image = f"![Resident memory of both processes over the soak](../images/{args.plot.name})"
    return f"{said}\n\n{how}\n\n{table(soak_report.head(), rows)}\n\n{image}\n"
