"""A stand-in for a vision-language model's server: it speaks OpenAI's chat-completions API and says what a script says.

No model runs here. `python scripted_vlm_server.py SCRIPT LOG` reads SCRIPT, a JSON object {"answers": [text,
...], "schemas": bool}, listens on a free loopback port and prints it. Each request gets the next answer; one
with a response_format gets status 400 where "schemas" is false; past the last answer the status is 500. Every
request's body is appended to LOG as one line of JSON, with the path and the authorization header.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


def main(script_path: str, log_path: str) -> None:
    script = json.loads(Path(script_path).read_text())
    answers = iter(script["answers"])

    class Handler(BaseHTTPRequestHandler):
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
                return
            message = {"role": "assistant", "content": answer}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            kind = {"id": "scripted", "object": "chat.completion", "created": 0, "model": body["model"]}
            self._reply(200, {**kind, "choices": [choice]})

        def _reply(self, status: int, answer: object) -> None:
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
