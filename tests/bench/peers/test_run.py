"""The bench itself: who is asked in which order, what counts, and which peer runs with what."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.bench.peers.conftest import random_checkpoint

from calomel.bench.heldout import HeldoutFile
from calomel.bench.holes import Hole
from calomel.bench.model import PlainMeasure
from calomel.bench.peers.fastest import fastest, open_peers
from calomel.bench.peers.moments import accepted, rests_of_lines
from calomel.bench.peers.peer import Ends, Peer, common_beginning
from calomel.bench.peers.run import flat_keys, measure
from calomel.bench.progress import Progress


class Scripted:
    """Answers with the same text, and takes its time."""

    def __init__(self, name: str, text: str, seconds: float, log: list[tuple[str, str]], now: list[float]) -> None:
        self.name = name
        self._text, self._seconds, self._log, self._now = text, seconds, log, now

    def fill(self, hole: Hole, context: int) -> str:
        del context
        self._log.append((self.name, hole.prefix))
        self._now[0] += self._seconds
        return self._text


class NamedPeer:
    def __init__(self, settings: str, closed: list[str]) -> None:
        self.name, self.settings, self._closed = "peer", settings, closed

    def decode(self, prompt: Sequence[int], most: int, end: int, ends: Ends) -> list[int]:
        raise NotImplementedError

    def close(self) -> None:
        self._closed.append(self.settings)


def hole(prefix: str, answer: str) -> Hole:
    return Hole("key", "rest_of_line", "python", "a.py", prefix, "", answer)


def test_each_is_warmed_one_keystroke_earlier_and_takes_turns_at_being_first() -> None:
    log: list[tuple[str, str]] = []
    now = [0.0]
    pair = [Scripted("ours", "xy", 0.5, log, now), Scripted("peer", "xz", 2.0, log, now)]
    cases = measure([hole("ab", "xy"), hole("cd", "xy")], pair, 64, Progress(stream=io.StringIO()), lambda: now[0])
    assert log == [
        ("ours", "a"), ("ours", "ab"), ("peer", "a"), ("peer", "ab"),
        ("peer", "c"), ("peer", "cd"), ("ours", "c"), ("ours", "cd"),
    ]  # fmt: skip
    flat = flat_keys(cases, ["ours", "peer"])
    assert flat["ms_per_character_ours"] == pytest.approx(250.0)
    assert flat["ms_per_character_peer"] == pytest.approx(2000.0)
    assert flat["vs_peer"] == pytest.approx(0.125)
    assert (flat["exact_match_ours"], flat["exact_match_peer"]) == (1.0, 0.0)


def test_nothing_right_leaves_the_time_for_a_character_open() -> None:
    now = [0.0]
    cases = measure(
        [hole("ab", "xy")],
        [Scripted("ours", "q", 1.0, [], now), Scripted("peer", "xy", 1.0, [], now)],
        64,
        Progress(stream=io.StringIO()),
        lambda: now[0],
    )
    flat = flat_keys(cases, ["ours", "peer"])
    assert flat["ms_per_character_ours"] is None
    assert flat["vs_peer"] is None


@pytest.mark.parametrize(
    ("answer", "truth", "count"), [("abc", "abd", 2), ("", "a", 0), ("abc", "ab", 2), ("x", "a", 0)]
)
def test_accepted_is_what_the_author_wrote_too(answer: str, truth: str, count: int) -> None:
    assert accepted(answer, truth) == count
    assert common_beginning([*map(ord, answer)], [*map(ord, truth)]) == count


def test_holes_are_rests_of_lines_behind_enough_text(files: tuple[HeldoutFile, ...]) -> None:
    found = rests_of_lines(files, PlainMeasure(), context=1000, count=4, seed=1)
    assert len(found) == 4
    for each in found:
        assert "\n" not in each.answer
        assert len(each.prefix) >= 4000
        source = next(file.text for file in files if file.path == each.path)
        assert (each.prefix + each.answer + each.suffix).endswith(source)
    assert found == rests_of_lines(files, PlainMeasure(), context=1000, count=4, seed=1)


def test_a_peer_runs_with_what_was_fastest_and_the_others_are_closed() -> None:
    closed: list[str] = []
    times = {"one": 3.0, "two": 1.0, "three": 2.0}

    def maker(name: str) -> Callable[[], Peer]:
        return lambda: NamedPeer(name, closed)

    said: list[str] = []
    chosen = fastest([maker(name) for name in times], lambda peer: times[peer.settings], said.append)
    assert chosen.settings == "two"
    assert closed == ["one", "two", "three"]
    assert len(said) == 3


def test_peers_that_are_not_there_are_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = random_checkpoint(tmp_path / "checkpoint", None)
    for module in ("transformers", "gguf", "llama_cpp"):
        monkeypatch.setitem(sys.modules, module, None)
    with open_peers(folder, 64, (1,), lambda _: 0.0, lambda _: None) as (peers, missing):
        assert peers == []
        assert [sentence.split(" is not installed")[0] for sentence in missing] == ["transformers", "gguf"]
