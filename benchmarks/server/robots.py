"""Runs robots that all live in one process, and prints what they met.

    python -m benchmarks.server.robots '{"port": ..., "robots": 4, ...}'

Each is a thread with openpi's own client. It keeps the time of a control loop of `hz`: at every `every`-th control step
it sends what it sees and waits for the reply; steps that pass meanwhile are missed and it goes on with the next one
that is due. `hz: 0`: the next request follows on a reply at once. The first `warm_s` seconds do not count. Prints
`begun`, and at the end JSON with, for each reply, milliseconds as the robot sees them, of the actor's pass with its
queue (0: none was needed) and the plan's age in control steps (-1: no plan).
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections import Counter
from typing import Any

from openpi_client.websocket_client_policy import WebsocketClientPolicy

from benchmarks.server.images import Views


class Robot:
    def __init__(self, number: int, job: dict[str, Any]):
        self.replies: list[tuple[float, float, int]] = []
        self.refusals: Counter[str] = Counter()
        self.missed_steps = 0
        self._number, self._job = number, job
        self._client = WebsocketClientPolicy("127.0.0.1", job["port"])
        self._views = Views(self._client.get_server_metadata())

    def play(self, began_s: float) -> None:
        """From `began_s` on (`time.monotonic`), until the job's time is over."""
        job, step = self._job, 0
        period_s = job["every"] / job["hz"] if job["hz"] else 0.0
        began_s += period_s * self._number / job["robots"]
        end_s, turn = began_s + job["warm_s"] + job["seconds"], 0
        while True:
            due_s = began_s + turn * period_s if period_s else time.monotonic()
            time.sleep(max(0.0, due_s - time.monotonic()))
            if time.monotonic() >= end_s:
                return
            counts = due_s >= began_s + job["warm_s"]
            self._ask(step, counts)
            passed = 1
            if period_s:
                passed = max(1, math.ceil((time.monotonic() - due_s) / period_s))
            if counts:
                self.missed_steps += (passed - 1) * job["every"]
            turn += passed
            step += passed * job["every"]

    def _fields(self, step: int) -> dict[str, Any]:
        return {"episode_id": f"robot-{self._number}", "step": step, "reset": step == 0}

    def _ask(self, step: int, counts: bool) -> None:
        message = self._views.at(self._number, step) | self._fields(step)
        sent_s = time.perf_counter()
        try:
            reply = self._client.infer(message)
        except RuntimeError as refusal:
            if counts:
                self.refusals[refusal_code(refusal)] += 1
            return
        if counts:
            age = reply["plan_age_steps"]
            waited_ms = 1000 * (time.perf_counter() - sent_s)
            self.replies.append((waited_ms, reply["s1_ms"] or 0.0, -1 if age is None else age))


def refusal_code(error: RuntimeError) -> str:
    """The server's code in what openpi's client raises, which puts a line of its own before it."""
    return str(error).splitlines()[-1].partition(":")[0]


def main() -> None:
    sys.setswitchinterval(0.001)  # robots share this interpreter; they should not wait for each other
    job = json.loads(sys.argv[1])
    robots = [Robot(number, job) for number in range(job["robots"])]
    began_s = time.monotonic() + 0.2
    threads = [threading.Thread(target=robot.play, args=(began_s,)) for robot in robots]
    print("begun", flush=True)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [{"replies": r.replies, "refusals": r.refusals, "missed_steps": r.missed_steps} for r in robots]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
