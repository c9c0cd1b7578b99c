"""Runs `swift sft`: hundreds of lines of the libraries go to a log, and the progress to the screen."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from predimem.core.progress import Bar, say, stage

END_S = 20.0  # for the processes of ms-swift to end after Ctrl-C
TAIL_LINES = 15
_STEP = re.compile(r"Train:.*\| *(\d+)/(\d+) \[")
_LOSS = re.compile(r"'loss': '?([\d.einf+-]+)")


class TrainingFailed(ValueError):
    """ms-swift ended with an error; the message has the end of its log, and the log's name."""


def run_swift(command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Train to the end. What ms-swift prints is added to the file `log`.

    Raises TrainingFailed. After Ctrl-C (KeyboardInterrupt) its processes have ended, too.
    """
    say(f"ms-swift starts; what it and its libraries say goes to {log}")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        assert process.stdout is not None
        try:
            _follow(process.stdout, file)
            code = process.wait()
        except BaseException:
            _end(process)
            raise
    if code != 0:
        lines = [line for line in re.split(r"[\r\n]+", log.read_text(errors="replace")) if line.strip()]
        end = "\n".join(f"  {line}" for line in lines[-TAIL_LINES:])
        raise TrainingFailed(f"ms-swift ended with code {code}. The end of its log, {log}:\n{end}")


def _follow(output: IO[bytes], log: IO[bytes]) -> None:
    """Copy the output to the log as it comes, and show the steps in it."""
    with ExitStack() as shown:
        shown.enter_context(stage("loading the model"))
        bar, loss, held = None, "", ""
        while data := os.read(output.fileno(), 65536):
            log.write(data)
            log.flush()
            *lines, held = re.split(r"[\r\n]", held + data.decode(errors="replace"))
            for line in lines:
                if found := _LOSS.search(line):
                    loss = f"loss {found[1]}"
                if found := _STEP.search(line):
                    done, total = map(int, found.groups())
                    if bar is None:
                        shown.close()  # the stage
                        bar = shown.enter_context(Bar(total, "steps", "training", done=done))
                    bar.add(max(0, done - bar.done), loss)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(END_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


@contextmanager
def libraries_write_to(log: Path) -> Iterator[None]:
    """In this block, what transformers would say and show on the screen goes to the file `log`."""
    from transformers.utils import logging as transformers_logging

    log.parent.mkdir(parents=True, exist_ok=True)
    logger = logging.getLogger("transformers")
    before, bars = logger.handlers, transformers_logging.is_progress_bar_enabled()
    handler = logging.FileHandler(log)
    logger.handlers = [handler]
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        logger.handlers = before
        handler.close()
        if bars:
            transformers_logging.enable_progress_bar()
