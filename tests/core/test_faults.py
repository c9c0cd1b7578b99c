"""Which exceptions are faults of the set-up, and how a full disk is found behind what libraries make of it."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pytest

from predimem.core.faults import SetupError, setup_fault
from predimem.core.weight_files import WeightsError, weights_folder


def raised_from(outer: Exception, inner: Exception) -> Exception:
    try:
        try:
            raise inner
        except Exception as error:
            raise outer from error
    except Exception as error:
        return error


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/eval/episodes.jsonl")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no such cube"),
        RuntimeError("the planner failed"),
        FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "episode-7.glb"),  # it may be one seed's alone
        FileNotFoundError("a message of our own"),
        KeyError("ticks"),
    ],
)
def test_faults_of_an_episode(error: Exception) -> None:
    assert setup_fault(error) is None


def test_weights_that_are_missing_are_a_fault_wherever_they_are_noticed(tmp_path: Path) -> None:
    with pytest.raises(WeightsError) as raised:
        weights_folder(tmp_path, "planner")
    fault = setup_fault(raised_from(RuntimeError("the planner failed: ..."), raised.value))
    assert type(fault) is SetupError and "no weights for 'planner'" in str(fault)
    assert str(pickle.loads(pickle.dumps(fault))) == str(fault)


def test_a_package_that_is_missing_is_a_fault() -> None:
    with pytest.raises(ModuleNotFoundError) as raised:
        __import__("no_such_simulator")
    assert "no_such_simulator is not installed" in str(setup_fault(raised.value))


def test_a_full_disk_keeps_its_path_through_other_exceptions() -> None:
    fault = setup_fault(raised_from(RuntimeError("cannot write the episode"), full_disk()))
    assert isinstance(fault, OSError)
    again = pickle.loads(pickle.dumps(fault))
    assert (again.errno, again.filename) == (errno.ENOSPC, "runs/eval/episodes.jsonl")


def test_a_full_disk_is_found_in_the_words_of_a_library() -> None:
    fault = setup_fault(RuntimeError("I/O error: No space left on device (os error 28)"))
    assert isinstance(fault, OSError) and fault.errno == errno.ENOSPC
