"""A task of the arena through openpi's own Runtime, against `predimem serve`: a client to start your own from.

    predimem serve --config configs/serve_arena.yaml --state-dir runs/serve
    python examples/openpi_client.py --task 1 --seed 900000            # add --chunks for openpi's ActionChunkBroker

End the server at any moment, with kill -9 too, and start it again with the same --state-dir: the episode goes on.
"""

import argparse
import re
import sys
import time

sys.path.pop(0)  # the folder of this file, which is called as openpi's package is

from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.base_policy import BasePolicy
from openpi_client.runtime.agents.policy_agent import PolicyAgent
from openpi_client.runtime.environment import Environment
from openpi_client.runtime.runtime import Runtime
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from websockets.exceptions import WebSocketException

from predimem.envs.arena.benchmark import ARENA, ArenaOptions
from predimem.envs.benchmark import EnvironmentRequest

FOR_NOW = re.compile(r"^(busy|overloaded|deadline|draining): ", re.MULTILINE)


class ArenaRobot(Environment):
    """What openpi asks of a robot. The images have the server's names; memory needs `step` and `episode_id`."""

    def __init__(self, task: str, seed: int) -> None:
        ARENA.prepare(images=True)
        self._arena = ARENA.make_environment(ARENA.task_name(task), ArenaOptions(), EnvironmentRequest())
        self._arena.camera_every = 2  # 10 images a second, as in training; the last one holds in between
        self._seed, self._episode_id = seed, f"openpi/{task}/{seed}/{time.time_ns()}"
        self.outcome, self.steps = None, 0

    def reset(self) -> None:
        if self.outcome is None:  # Runtime resets once more at its end
            self._seen, self._ended = self._arena.reset(self._seed), False

    def is_episode_complete(self) -> bool:
        return self._ended

    def get_observation(self) -> dict:
        told = {"prompt": self._arena.instruction, "episode_id": self._episode_id, "step": self._seen.step}
        return {**self._seen.images, "state": self._seen.state, **told}

    def apply_action(self, action: dict) -> None:
        rows = action["actions"]  # of a whole reply the first row is for this step; the broker gives one row
        result = self._arena.step(rows[0] if rows.ndim == 2 else rows)
        self._seen, self._ended = result.observation, result.terminated or result.truncated
        self.steps += 1
        self.outcome = {"done": True, "episode_id": self._episode_id, "success": result.success}


class PatientPolicy(BasePolicy):
    """openpi's client, which connects again and asks again when the server was away or refused for the moment."""

    def __init__(self, host: str, port: int, patience_s: float = 120.0) -> None:
        self._place, self._patience_s, self._client = (host, port), patience_s, None
        self.metadata = self._ask(WebsocketClientPolicy.get_server_metadata)

    def infer(self, obs: dict) -> dict:  # a step that is sent twice gets the same reply twice
        return self._ask(lambda client: client.infer(obs))

    def _ask(self, question):
        until = time.monotonic() + self._patience_s
        while True:
            try:
                self._client = self._client or WebsocketClientPolicy(*self._place)
                return question(self._client)
            except (OSError, EOFError, WebSocketException) as error:
                lost, self._client = error, None
            except RuntimeError as error:  # the server's own words, which begin with a code
                if not FOR_NOW.search(str(error)):
                    raise
                lost = error
            if time.monotonic() > until:
                raise TimeoutError(f"no answer within {self._patience_s:g} s") from lost
            time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="1", help="number, name or file")
    parser.add_argument("--seed", type=int, default=900000)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--chunks", action="store_true", help="ask once for each chunk, through ActionChunkBroker")
    parser.add_argument("--max-steps", type=int, default=0, help="0: until the task ends")
    args = parser.parse_args()
    policy, robot = PatientPolicy(args.host, args.port), ArenaRobot(args.task, args.seed)
    asked = ActionChunkBroker(policy, policy.metadata["action_horizon"]) if args.chunks else policy
    hz = policy.metadata["control_hz"]
    Runtime(robot, PolicyAgent(asked), [], max_hz=hz, max_episode_steps=args.max_steps).run()
    end = policy.infer(robot.outcome)  # ends the episode, so that the server's page lists it among the past ones
    print(f"task {args.task}, seed {args.seed}: {end['outcome']} after {robot.steps} steps")


if __name__ == "__main__":
    main()
