"""The bench itself: who is asked in which order, what counts, and which peer runs with what."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.bench.peers.conftest import random_checkpoint

from calomel.bench.peer_engines import Offer, Peer, fastest, open_peers
from calomel.bench.peers import Answer, Case, Moment, flat_keys, measure, ratio_table, table
from calomel.replay.events import common
from calomel.report.heldout import Hole
from calomel.report.running import Progress


class Scripted:
    """Answers with the same text, and takes its time."""

    def __init__(self, name: str, text: str, seconds: float, log: list[tuple[str, str]], now: list[float]) -> None:
        self.name = name
        self._text, self._seconds, self._log, self._now = text, seconds, log, now

    def fill(self, moment: Moment, context: int) -> Answer:
        del context
        self._log.append((self.name, moment.hole.prefix))
        self._now[0] += self._seconds
        return Answer(self._text, prompt=100, read=7)


class NamedPeer(Peer):
    name = "peer"

    def __init__(self, settings: str, closed: list[str]) -> None:
        super().__init__(settings)
        self._closed = closed

    def keep(self, count: int) -> None:
        raise NotImplementedError

    def step(self, fresh: Sequence[int]) -> int:
        raise NotImplementedError

    def close(self) -> None:
        self._closed.append(self.settings)


def moment(prefix: str, answer: str) -> Moment:
    return Moment("place", (), Hole("key", "rest_of_line", "python", "a.py", prefix, "", answer))


def play(cases: list[tuple[Moment, dict[str, tuple[str, float]]]]) -> list[Case]:
    """Cases of contenders that answer with a text after some seconds."""
    found = []
    now = [0.0]
    for asked, answers in cases:
        contenders = [Scripted(name, text, seconds, [], now) for name, (text, seconds) in answers.items()]
        found += measure([asked], contenders, 64, Progress(stream=io.StringIO()), lambda: now[0], lambda: 3 * now[0])
    return found


def test_each_is_warmed_one_keystroke_earlier_and_takes_turns_at_being_first() -> None:
    log: list[tuple[str, str]] = []
    now = [0.0]
    pair = [Scripted("ours", "xy", 0.5, log, now), Scripted("peer", "xz", 2.0, log, now)]
    cases = measure(
        [moment("ab", "xy"), moment("cd", "xy")],
        pair,
        64,
        Progress(stream=io.StringIO()),
        lambda: now[0],
        lambda: 3 * now[0],
    )
    assert log == [
        ("ours", "a"), ("ours", "ab"), ("peer", "a"), ("peer", "ab"),
        ("peer", "c"), ("peer", "cd"), ("ours", "c"), ("ours", "cd"),
    ]  # fmt: skip
    flat = flat_keys(cases, ["ours", "peer"])
    assert flat["ms_per_character_ours"] == pytest.approx(250.0)
    assert flat["ms_per_character_peer"] == pytest.approx(2000.0)
    assert flat["vs_peer"] == pytest.approx(0.125)
    assert (flat["processor_ms_per_character_ours"], flat["processor_vs_peer"]) == pytest.approx((750.0, 0.125))
    assert (flat["exact_match_ours"], flat["exact_match_peer"]) == (1.0, 0.0)
    assert (flat["prompt_tokens_ours"], flat["read_tokens_peer"]) == (100.0, 7.0)


def test_nothing_right_leaves_the_time_for_a_character_open() -> None:
    cases = play([(moment("ab", "xy"), {"ours": ("q", 1.0), "peer": ("xy", 1.0)})])
    flat = flat_keys(cases, ["ours", "peer"])
    assert flat["ms_per_character_ours"] is None
    assert flat["vs_peer"] is None
    assert "| ours | 1000.0 |" in table(flat, ["ours", "peer"]).to_markdown()
    assert "| peer | - | - | 1.00 [1.00, 1.00] |" in ratio_table(flat, ["ours", "peer"]).to_markdown()


def test_a_twin_that_is_wrong_is_also_compared_as_if_it_were_right() -> None:
    cases = play(
        [
            (moment("a", "xy"), {"ours": ("xy", 1.0), "transformers": ("xy", 4.0), "llamacpp": ("q", 2.0)}),
            (moment("a", "xy"), {"ours": ("xy", 1.0), "transformers": ("xy", 4.0), "llamacpp": ("x", 2.0)}),
        ]
    )
    flat = flat_keys(cases, ["ours", "transformers", "llamacpp"])
    assert flat["vs_llamacpp"] == pytest.approx(500 / 4000)
    assert flat["vs_llamacpp_as_right_as_transformers"] == pytest.approx(500 / 1000)
    assert flat["processor_vs_llamacpp_as_right_as_transformers"] == pytest.approx(1500 / 3000)
    page = ratio_table(flat, ["ours", "transformers", "llamacpp"]).to_markdown()
    assert "| llamacpp as right as transformers | 0.50 | 0.50 | - |" in page


@pytest.mark.parametrize(
    ("answer", "truth", "count"), [("abc", "abd", 2), ("", "a", 0), ("abc", "ab", 2), ("x", "a", 0)]
)
def test_accepted_is_what_the_author_wrote_too(answer: str, truth: str, count: int) -> None:
    assert common(answer, truth) == count


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
    with open_peers(Offer(folder, 64, (1,)), lambda _: 0.0, lambda _: None) as (peers, missing):
        assert peers == []
        assert [sentence.split(" is not installed")[0] for sentence in missing] == ["transformers", "gguf"]
