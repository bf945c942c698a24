from __future__ import annotations

import signal
import sys
from dataclasses import replace

import pytest

from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.table import find
from calomel.suggest.launch import session_name
from calomel.suggest.replicas.errors import ReplicasError
from calomel.suggest.replicas.kept_signal import kept_signal
from calomel.suggest.replicas.opening import RAY_BYTES, bytes_of_replica, open_replicas, refuse_too_many
from calomel.weights import nano_path

OPTIONS = OpenOptions(cache_tokens=4096)


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def test_less_than_one_replica_is_refused() -> None:
    shape = find(nano_path()).config(read_config(nano_path()), nano_path())
    with pytest.raises(ReplicasError, match="at least 1"):
        open_replicas(nano_path(), OPTIONS, shape, 0)


def test_more_replicas_than_there_is_room_for_are_refused_and_it_is_said_how_many_fit() -> None:
    each = bytes_of_replica(nano_path(), OPTIONS)
    refuse_too_many(nano_path(), replace(OPTIONS, memory_limit=RAY_BYTES + 3 * each), 3)
    with pytest.raises(
        ReplicasError, match=r"4 replicas of nano need .* GiB is free; nothing was started. 3 would fit"
    ):
        refuse_too_many(nano_path(), replace(OPTIONS, memory_limit=RAY_BYTES + 4 * each - 1), 4)
    with pytest.raises(ReplicasError, match="not even one fits"):
        refuse_too_many(nano_path(), replace(OPTIONS, memory_limit=each), 2)


def test_more_replicas_than_gpus_are_refused() -> None:
    with pytest.raises(ReplicasError, match="10000 GPUs"):
        refuse_too_many(nano_path(), replace(OPTIONS, device="cuda"), 10_000)


def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = find(nano_path()).config(read_config(nano_path()), nano_path())
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ReplicasError, match=r"pip install 'calomel\[cluster\]'"):
        open_replicas(nano_path(), OPTIONS, shape, 1)


def test_a_workspace_has_one_name_that_tells_nothing_of_its_path() -> None:
    here, there = nano_path(), nano_path().parent
    assert session_name([here, there]) == session_name([there, here])
    assert session_name([here]) != session_name([there])
    assert session_name([]) == ""
    assert "nano" not in session_name([here])


def test_a_handler_that_a_library_replaces_comes_back() -> None:
    heard: list[str] = []
    before = signal.signal(signal.SIGUSR2, lambda *_: heard.append("mine"))
    try:
        with kept_signal(signal.SIGUSR2):
            import ctypes

            ctypes.CDLL(None).signal(signal.SIGUSR2, ctypes.c_void_p(1))  # SIG_IGN, behind Python's back
            signal.raise_signal(signal.SIGUSR2)
        signal.raise_signal(signal.SIGUSR2)
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert heard == ["mine"]
