"""The log of outcomes, and what is read from it."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.suggest.made_outcome import an_outcome, bad_lines, read

from calomel.infer.completer import Candidate
from calomel.selectivity.fit import usable
from calomel.selectivity.sample import Sample
from calomel.suggest.outcome_history import outcome_samples
from calomel.suggest.outcome_log import OutcomeLog, OutcomeRecord, line_of, numbered, record_of
from calomel.suggest.signals import signals_of

WALL = 1_790_000_000.1234


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "calomel" / "outcomes.jsonl"


def a_log(path: Path, **options: Any) -> OutcomeLog:
    return OutcomeLog(path, **{"version": "1.2", "wall": lambda: WALL, "warn": pytest.fail, **options})


def test_what_was_written_is_read_again(path: Path) -> None:
    log = a_log(path)
    log.record(an_outcome(outcome="shown", reason="", accepted_length=0))
    log.record(an_outcome())
    log.close()
    shown, accepted = read(path)
    assert accepted == OutcomeRecord(
        time=1_790_000_000.123,
        id="00ff",
        outcome="accepted",
        session=shown.session,
        reason="by_command",
        kind="fill",
        language="python",
        extension="py",
        trigger="edit",
        model="calomel-nano",
        version="1.2",
        probability=0.75,
        visible_seconds=0.6,
        length=12,
        accepted_length=12,
        unit="all",
    )
    assert (shown.outcome, shown.unit, len(shown.session)) == ("shown", "", 8)


@pytest.mark.parametrize("wall", [-1e9, 0.0, 1e15, float("inf"), float("nan")])
def test_an_outcome_counts_whatever_the_clock_says(path: Path, wall: float) -> None:
    log = a_log(path, wall=lambda: wall)
    log.record(an_outcome())
    (record,) = read(path)
    assert 0 <= record.time <= 253_402_300_799
    assert log.lost == 0


def test_only_its_user_can_read_the_log(path: Path) -> None:
    a_log(path).record(an_outcome())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    a_log(path).record(an_outcome())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("uri", "extension"),
    [
        ("file:///home/hopper/secret/rocket.PY", "py"),
        ("file:///home/hopper/.netrc", ""),
        ("untitled:Untitled-1", ""),
        ("file://[secret/rocket.py", ""),
    ],
)
def test_of_a_path_the_extension_alone_is_written_and_of_the_text_nothing(path: Path, uri: str, extension: str) -> None:
    a_log(path).record(an_outcome(uri=uri))
    assert [record.extension for record in read(path)] == [extension]
    written = path.read_text(encoding="utf-8")
    assert [word for word in ("hopper", "secret", "rocket", "netrc", "launch") if word in written] == []


def test_names_from_the_editor_cannot_carry_text_or_lines_into_the_log(path: Path) -> None:
    a_log(path).record(an_outcome(language_id='py\n{"x":1}\x1b[31m' + "y" * 500, reason="a b\nc"))
    (record,) = read(path)
    assert "\n" not in record.language
    assert "\x1b" not in record.language
    assert len(record.language) == 64
    assert record.reason == "a_b_c"


def test_numbers_that_are_none_do_not_break_the_line(path: Path) -> None:
    log = a_log(path)
    log.record(an_outcome(signals=signals_of(Candidate("a", log_probs=(float("-inf"), float("nan"))), [])))
    json.loads(path.read_bytes(), parse_constant=pytest.fail)
    assert bad_lines(path) == 0


def test_a_full_log_moves_on_and_the_oldest_goes(path: Path) -> None:
    size = len(line_of(an_outcome(id="0000"), time=WALL, session="12345678", version="1.2"))
    log = a_log(path, max_bytes=3 * size, kept_files=3)
    for number in range(20):
        log.record(an_outcome(id=f"{number:04}"))
    assert [record.id for record in read(path)] == [f"{number:04}" for number in range(12, 20)]
    assert not numbered(path, 3).exists()
    assert all(stat.S_IMODE(numbered(path, number).stat().st_mode) == 0o600 for number in range(3))


_WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from tests.suggest.made_outcome import an_outcome, bad_lines, read
from calomel.suggest.outcome_log import OutcomeLog
log = OutcomeLog(Path(sys.argv[1]), max_bytes=20_000, kept_files=60, warn=sys.exit)
sys.stdin.readline()
for number in range(150):
    log.record(an_outcome(id=f"{sys.argv[2]}-{number}", text="x" * (number % 90)))
"""


def test_several_windows_do_not_mix_their_lines(path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    windows = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), str(each)], stdin=subprocess.PIPE, env=environment)
        for each in range(3)
    ]
    for window in windows:
        assert window.stdin is not None
        window.stdin.write(b"go\n")
        window.stdin.flush()
    for window in windows:
        window.communicate(timeout=60)
        assert window.returncode == 0
    assert bad_lines(path) == 0
    assert sorted(record.id for record in read(path)) == sorted(f"{a}-{b}" for a in range(3) for b in range(150))
    assert numbered(path, 1).exists()


def test_a_full_disk_is_said_once_and_typing_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    said: list[str] = []
    log = a_log(path, warn=said.append)
    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        for _ in range(3):
            log.record(an_outcome())
    log.record(an_outcome())
    assert (len(said), log.lost) == (1, 3)
    assert "No space left on device" in said[0]
    assert len(read(path)) == 1


def test_a_line_that_another_window_did_not_finish_costs_itself_alone(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"time":1,"id":"to')
    a_log(path).record(an_outcome(id="whole"))
    assert ([record.id for record in read(path)], bad_lines(path)) == (["whole"], 1)


@pytest.mark.parametrize("obstacle", ["folder", "link", "pipe", "no right"])
def test_what_is_no_file_of_ours_is_not_written_to(path: Path, obstacle: str) -> None:
    path.parent.mkdir(parents=True)
    target = path.parent / "target"
    match obstacle:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(target)
        case "pipe":
            os.mkfifo(path)
        case _:
            path = Path("/proc/calomel/outcomes.jsonl")
    said: list[str] = []
    log = a_log(path, warn=said.append)
    log.record(an_outcome())
    log.record(an_outcome())
    assert len(said) == 1
    assert not target.exists()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b'{"time":"now","id":"1","outcome":"shown"}',
        b'{"time":1,"id":2,"outcome":"shown"}',
        b'{"time":1,"id":"1","outcome":"shown","signals":[]}',
        b"[" * 100_000,
    ],
)
def test_a_line_that_is_no_outcome_is_skipped_and_counted(path: Path, line: bytes) -> None:
    log = a_log(path)
    log.record(an_outcome(id="before"))
    with path.open("ab") as file:
        file.write(line + b"\n")
    log.record(an_outcome(id="after"))
    assert [record.id for record in read(path)] == ["before", "after"]
    assert bad_lines(path) == bool(line)


def test_what_a_later_version_wrote_is_read_as_far_as_this_one_knows_it(path: Path) -> None:
    line = b'{"format":7,"time":1,"id":"1","outcome":"regretted","mood":[1,2],"signals":{"novelty":0.5}}'
    record = record_of(line)
    assert (record.outcome, record.signals) == ("regretted", {"novelty": 0.5})


@given(st.binary(max_size=200))
def test_no_line_brings_the_reader_down(line: bytes) -> None:
    try:
        record_of(line)
    except ValueError:
        return


@given(text=st.text(max_size=50), length=st.integers(0, 120), uri=st.text(max_size=40))
def test_any_outcome_makes_one_line_that_can_be_read(text: str, length: int, uri: str) -> None:
    outcome = an_outcome(text=text, accepted_length=length, uri=uri, outcome="partly_accepted", language_id=text)
    line = line_of(outcome, time=WALL, session="1", version="1")
    assert line.count(b"\n") == 1
    assert record_of(line).accepted_length == length


def lines(number: int, *outcomes: str, **changes: Any) -> list[OutcomeRecord]:
    """What a log has of one suggestion; its numbers stand in the first line."""
    values: dict[str, Any] = {"session": "5e55", "kind": "fill", "trigger": "edit", "model": "nano"} | changes
    signals = {"mean_log_prob": -0.3, "tokens": 4}
    return [
        OutcomeRecord(8.64e5 + at, f"{number:x}", outcome, **values, signals={} if at else signals)
        for at, outcome in enumerate(outcomes)
    ]


def only(records: Iterable[OutcomeRecord]) -> Sample:
    (found,) = outcome_samples(records)
    return found


@pytest.mark.parametrize(
    ("outcomes", "reason", "expected"),
    [
        (("shown", "accepted"), "", "accepted"),
        (("shown", "accepted"), "by_text", "accepted"),
        (("shown", "partly_accepted"), "", "partly"),
        (("shown", "rejected"), "", "rejected"),
        (("shown", "ignored"), "", "rejected"),
        (("shown", "ignored"), "moved_away", "rejected"),
        (("shown", "ignored"), "typed_out", "accepted"),
        (("shown", "superseded"), "", "superseded"),
        (("shown",), "", "superseded"),
        (("withheld",), "low_confidence", "rejected"),
        (("withheld", "typed"), "low_confidence", "accepted"),
        (("withheld", "shown", "accepted"), "low_confidence", "accepted"),
    ],
)
def test_the_last_word_about_a_suggestion_is_its_outcome(outcomes: tuple[str, ...], reason: str, expected: str) -> None:
    found = only(lines(1, *outcomes, reason=reason))
    assert found.outcome == expected
    assert found.shown == ("shown" in outcomes)
    assert found.filters == ()


def test_what_a_filter_dropped_is_marked_and_not_fitted_to() -> None:
    records = [
        *lines(1, "withheld", reason="unbalanced"),
        *lines(2, "withheld", "typed", reason="repeats_above"),
        *lines(3, "withheld", reason="low_confidence"),
    ]
    found = outcome_samples(records)
    assert [each.filters for each in found] == [("unbalanced",), ("repeats_above",), ()]
    assert usable(found, "fill") == [found[2]]
    # Once it was shown, no filter dropped it.
    assert only([*lines(1, "withheld", reason="unbalanced"), *lines(1, "shown")]).filters == ()


def test_what_somebody_asked_for_by_hand_says_nothing_about_the_rest() -> None:
    records = [*lines(1, "shown", "accepted", trigger="explicit"), *lines(2, "shown", "rejected", trigger="cursor")]
    assert [each.outcome for each in outcome_samples(records)] == ["rejected"]


def test_acceptances_of_clients_that_tell_of_nothing_else_are_not_learnt_from() -> None:
    shown, accepted = lines(1, "shown", "accepted")
    assert only([shown, replace(accepted, reason="by_prompt")]).outcome == "superseded"
