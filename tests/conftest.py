"""What every test gets: one thread per library, since tests share two cores with each other.

What could not run on this machine is said at the end of the run, by reason; on CI (`CI=true`) all of it has to run.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterator

import pytest

from predimem.core.progress import show_on
from tests.needs import NEEDS

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")


def pytest_configure(config: pytest.Config) -> None:
    """Under nohup SIGINT is ignored, and the programs that tests start and interrupt would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", f"needs(*names): left out where one is missing; names: {', '.join(NEEDS)}")
    missing = [need.reason for need in NEEDS.values() if not need.optional and not need.found()]
    if missing and os.environ.get("CI") == "true":
        raise pytest.UsageError("CI has to run every test, and some cannot run here:\n- " + "\n- ".join(missing))


@pytest.fixture(autouse=True)
def _progress_on_standard_error() -> Iterator[None]:
    """`predimem serve` shows its progress elsewhere, and tests call it in their own process."""
    yield
    show_on(None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = {name: need.reason for name, need in NEEDS.items() if not need.found()}
    for item in items:
        for name in (name for mark in item.iter_markers("needs") for name in mark.args):
            if name not in NEEDS:
                raise pytest.UsageError(f"{item.nodeid} needs {name!r}; expected one of {', '.join(NEEDS)}")
            if name in missing:
                item.add_marker(pytest.mark.skip(reason=missing[name]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason why tests were left out, on any verbosity."""
    files: dict[str, list[str]] = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", []):
        files[report.longrepr[2].removeprefix("Skipped: ")].append(report.nodeid.split("::")[0])
    for reason, of_tests in sorted(files.items()):
        tests, where = len(of_tests), len(set(of_tests))
        terminalreporter.write_line(
            f"not run: {tests} {'test' if tests == 1 else 'tests'} in {where} {'file' if where == 1 else 'files'}, "
            f"because {reason}"
        )
