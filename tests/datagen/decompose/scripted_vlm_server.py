"""A stand-in for a vision-language model's server: it speaks OpenAI's chat-completions API and says what a script says.

No model runs here. `python scripted_vlm_server.py SCRIPT LOG` reads SCRIPT, a JSON object {"answers": [...], "schemas":
bool, "models": [name, ...]}, listens on a free loopback port and prints it. Each request gets the next answer: a text,
which becomes a chat completion, or an object with a reply of another kind: `status`, `headers`, `body` (sent as it is),
`finish_reason` with `text`, `wait_s` (before the reply), `drip_s` (between two bytes), `hang_up`. A request with a
response_format gets status 400 where "schemas" is false; past the last answer the status is 500. GET /models lists
"models", or is not found. Every POST's body is appended to LOG as one line of JSON, with the path and the authorization
header.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def main(script_path: str, log_path: str) -> None:
    script = json.loads(Path(script_path).read_text())
    answers = iter(script["answers"])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith("/models") and "models" in script:
                self._reply(200, {"object": "list", "data": [{"id": name} for name in script["models"]]})
            else:
                self._reply(404, {"detail": "Not Found"})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            entry = {"path": self.path, "authorization": self.headers["Authorization"], "body": body}
            with open(log_path, "a") as log:
                log.write(json.dumps(entry) + "\n")
            if "response_format" in body and not script.get("schemas", True):
                self._reply(400, {"error": {"message": "response_format json_schema is not supported", "type": "x"}})
                return
            answer = next(answers, None)
            if answer is None:
                self._reply(500, {"error": {"message": "the script is at its end", "type": "x"}})
            elif isinstance(answer, str):
                self._reply(200, completion(answer))
            else:
                self._reply_otherwise(answer)

        def _reply_otherwise(self, answer: dict[str, Any]) -> None:
            time.sleep(answer.get("wait_s", 0))
            if answer.get("hang_up"):
                self.close_connection = True
                return
            body = answer.get("body")
            if body is None:
                body = completion(answer.get("text"), answer.get("finish_reason", "stop"))
            self._reply(answer.get("status", 200), body, answer.get("headers", {}), answer.get("drip_s", 0))

        def _reply(self, status: int, answer: object, headers: Mapping[str, str] = {}, drip_s: float = 0) -> None:
            data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            try:
                for at in range(0, len(data), 1 if drip_s else len(data)):
                    self.wfile.write(data[at : at + 1] if drip_s else data)
                    time.sleep(drip_s)
            except OSError:  # the client has given up
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


def completion(text: str | None, finish_reason: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": finish_reason, "message": message}
    kind = {"id": "scripted", "object": "chat.completion", "created": 0, "model": "scripted"}
    return {**kind, "choices": [choice], "usage": {"completion_tokens": 17, "prompt_tokens": 1, "total_tokens": 18}}


if __name__ == "__main__":
    main(*sys.argv[1:])
