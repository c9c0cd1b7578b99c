"""A training process: what it says goes to the log, its steps to the screen; its end, whichever way."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner.sft_run import TrainingFailed, libraries_write_to, run_swift
from tests.processes import descendants, is_running

ROOT = Path(__file__).parents[2]
TALKS = """
import sys, time
for n in range(300): print(f"[INFO:swift] line {n}")
print("Train:  17%|#7   | 1/6 [00:00<00:03,  1.26it/s]", end="\\r", flush=True)
print("{'loss': '9.577', 'grad_norm': '7.4', 'global_step/max_steps': '1/6'}")
for step in range(2, 7): print(f"Train:  17%|#7   | {step}/6 [00:00<00:03,  1.26it/s]", end="\\r", flush=True)
print("{'loss': '8.5', 'global_step/max_steps': '6/6'}")
"""


def test_only_the_progress_is_shown(tmp_path, capsys):
    log = tmp_path / "out" / "train.log"
    run_swift([sys.executable, "-c", TALKS + "print('Train: 100%|##| 6/6 [00')"], os.environ, log)
    shown = [line for line in capsys.readouterr().err.splitlines() if "so far" not in line]
    assert shown[:2] == [f"ms-swift starts; what it and its libraries say goes to {log}", "loading the model"]
    assert shown[2].startswith("training: 6 of 6 steps, in ") and shown[2].endswith(": loss 8.5") and len(shown) == 3
    assert "[INFO:swift] line 299\n" in log.read_text() and "'grad_norm': '7.4'" in log.read_text()


def test_a_failure_shows_the_end_of_the_log_and_names_it(tmp_path):
    log = tmp_path / "train.log"
    with pytest.raises(TrainingFailed) as raised:
        run_swift([sys.executable, "-c", TALKS + "raise MemoryError('out of memory')"], os.environ, log)
    message = str(raised.value)
    assert message.startswith(f"ms-swift ended with code 1. The end of its log, {log}:\n")
    assert message.endswith("MemoryError: out of memory") and "Traceback" in message and "line 100" not in message


def test_ctrl_c_ends_the_processes_that_it_started(tmp_path):
    sleeper = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{'import time; time.sleep(600)'}'])"
    code = f"""
import os, sys
from pathlib import Path
from planner.sft_run import run_swift
run_swift([sys.executable, "-c", {sleeper!r}], os.environ, Path(sys.argv[1]))
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "log")], cwd=ROOT)

    started: list[int] = []
    until = time.monotonic() + 120
    while len(started) < 2 and time.monotonic() < until:
        time.sleep(0.1)
        started = descendants(process.pid)
    assert len(started) == 2
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert not any(map(is_running, started))


def test_transformers_write_to_the_log(tmp_path, capsys):
    logger = logging.getLogger("transformers.modeling_utils")
    with libraries_write_to(tmp_path / "train.log"):
        logger.warning("predictive_head | UNEXPECTED")
    logger.warning("shown again")
    assert "UNEXPECTED" in (tmp_path / "train.log").read_text()
    shown = capsys.readouterr().err
    assert "UNEXPECTED" not in shown
