from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.suggest.completer import Candidate
from calomel.suggest.edit import Planned
from calomel.suggest.offers import Outcome
from calomel.suggest.outcome_history import OutcomeHistory, read_outcomes
from calomel.suggest.outcome_log import OutcomeLog, OutcomeRecord, line_of, numbered, outcome_log_path, record_of
from calomel.suggest.signals import signals_of

WALL = 1_790_000_000.1234


def an_outcome(**changes: Any) -> Outcome:
    whole = Outcome(
        id="00ff",
        outcome="accepted",
        reason="by_command",
        kind="fill",
        uri="file:///home/ada/secret-project/plans/rocket.py",
        language_id="python",
        trigger="edit",
        model="calomel-nano",
        probability=0.75,
        visible_seconds=0.6,
        length=12,
        accepted_length=12,
        text="launch(now)\n",
    )
    return replace(whole, **changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "calomel" / "outcomes.jsonl"


def a_log(path: Path, **options: Any) -> OutcomeLog:
    return OutcomeLog(path, version="1.2", wall=lambda: WALL, warn=options.pop("warn", pytest.fail), **options)


def read(path: Path) -> OutcomeHistory:
    return read_outcomes(path)


def test_what_was_written_is_read_again(path: Path) -> None:
    log = a_log(path)
    log.record(an_outcome(outcome="shown", reason="", accepted_length=0))
    log.record(an_outcome())
    log.close()
    shown, accepted = read(path).records
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


def test_only_its_user_can_read_the_log(path: Path) -> None:
    a_log(path).record(an_outcome())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    a_log(path).record(an_outcome())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_neither_paths_nor_text_are_written(path: Path) -> None:
    a_log(path).record(an_outcome())
    written = path.read_text()
    for word in ("ada", "secret-project", "rocket", "launch"):
        assert word not in written


def test_text_is_written_masked_when_the_user_wants_it(path: Path) -> None:
    log = a_log(path, mask=lambda text: text.replace("now", "***"))
    log.record(an_outcome())
    log.mask = None
    log.record(an_outcome())
    assert [record.text for record in read(path).records] == ["launch(***)\n", None]


@pytest.mark.parametrize(
    ("uri", "extension"),
    [
        ("file:///a/b.PY", "py"),
        ("file:///a/b.test.tsx", "tsx"),
        ("file:///a/.netrc", ""),
        ("file:///a/Makefile", ""),
        ("untitled:Untitled-1", ""),
        ("file:///a/letter.to-my-doctor", ""),
        ("file://[bad/a.py", ""),
        ("", ""),
    ],
)
def test_of_a_path_the_extension_alone_is_written(path: Path, uri: str, extension: str) -> None:
    a_log(path).record(an_outcome(uri=uri))
    assert [record.extension for record in read(path).records] == [extension]


@pytest.mark.parametrize(
    ("text", "taken", "unit"),
    [
        ("a = b\nc = d\n", 6, "lines"),
        ("a = b\nc = d\n", 5, "lines"),
        ("a = b\nc = d\n", 4, "words"),
        ("😀😀 x", 4, "words"),
    ],
)
def test_a_partial_acceptance_says_of_what(path: Path, text: str, taken: int, unit: str) -> None:
    a_log(path).record(an_outcome(outcome="partly_accepted", text=text, accepted_length=taken))
    assert [(record.unit, record.accepted_length) for record in read(path).records] == [(unit, taken)]


def test_names_from_the_editor_cannot_carry_text_or_lines_into_the_log(path: Path) -> None:
    a_log(path).record(an_outcome(language_id='py\n{"x":1}\x1b[31m' + "y" * 500, reason="a b\nc"))
    (record,) = read(path).records
    assert "\n" not in record.language
    assert "\x1b" not in record.language
    assert len(record.language) == 64
    assert record.reason == "a_b_c"


def test_the_models_numbers_are_written_and_those_that_are_none_are_left_out(path: Path) -> None:
    candidate = Candidate("ab", log_probs=(-0.5, -1.5), entropies=(0.25, 0.75), steps=3, length_scores=((8, -1.25),))
    log = a_log(path)
    log.record(an_outcome(signals=signals_of(candidate, [Planned(3, 5, "x\ny", "z\n")])))
    log.record(an_outcome(signals=signals_of(Candidate(""), [])))
    first, second = read(path).records
    expected = {
        "tokens": 2,
        "mean_log_prob": -1.0,
        "min_log_prob": -1.5,
        "mean_entropy": 0.5,
        "max_entropy": 0.75,
        "finish_reason": "stop",
        "steps": 3,
        "length_scores": [[8, -1.25]],
        "edits": 1,
        "characters_removed": 2,
        "characters_inserted": 3,
        "lines_removed": 1,
        "lines_inserted": 1,
    }
    assert {name: first.signals[name] for name in expected} == expected
    assert {"end_log_prob", "distance", "place", "before", "likely"}.isdisjoint(first.signals)
    assert "mean_log_prob" not in second.signals


def test_numbers_that_are_none_do_not_break_the_line(path: Path) -> None:
    log = a_log(path)
    log.record(an_outcome(signals=signals_of(Candidate("a", log_probs=(float("-inf"), float("nan"))), [])))
    json.loads(path.read_bytes(), parse_constant=pytest.fail)
    assert read(path).bad_lines == 0


def test_a_full_log_moves_on_and_the_oldest_goes(path: Path) -> None:
    size = len(line_of(an_outcome(id="0000"), time=WALL, session="12345678", version="1.2"))
    log = a_log(path, max_bytes=3 * size, kept_files=3)
    for number in range(20):
        log.record(an_outcome(id=f"{number:04}"))
    assert [record.id for record in read(path).records] == [f"{number:04}" for number in range(12, 20)]
    assert not numbered(path, 3).exists()
    assert all(stat.S_IMODE(numbered(path, number).stat().st_mode) == 0o600 for number in range(3))


def test_a_window_goes_on_in_the_new_file_when_another_moved_the_old_one(path: Path) -> None:
    size = len(line_of(an_outcome(), time=WALL, session="12345678", version="1.2"))
    one, other = a_log(path, max_bytes=2 * size), a_log(path, max_bytes=2 * size)
    for log in (one, other, one, other, one):
        log.record(an_outcome())
    assert len(read(path).records) == 5
    assert [numbered(path, number).stat().st_size // size for number in range(3)] == [1, 2, 2]


def test_a_log_that_was_deleted_begins_anew(path: Path) -> None:
    log = a_log(path)
    log.record(an_outcome())
    path.unlink()
    log.record(an_outcome())
    assert len(read(path).records) == 1


def test_a_file_that_another_window_has_just_renamed_is_made_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = OutcomeLog(path, max_bytes=1, warn=pytest.fail)
    log.record(an_outcome())
    rotation = log._rotation

    def after_another() -> contextlib.AbstractContextManager[bool]:
        path.rename(path.with_name("elsewhere"))
        return rotation()

    monkeypatch.setattr(log, "_rotation", after_another)
    log.record(an_outcome())
    assert len(read(path).records) == 1


_WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from test_outcome_log import an_outcome
from calomel.suggest.outcome_log import OutcomeLog
log = OutcomeLog(Path(sys.argv[1]), max_bytes=20_000, kept_files=60, warn=sys.exit)
sys.stdin.readline()
for number in range(300):
    log.record(an_outcome(id=f"{sys.argv[2]}-{number}", text="x" * (number % 90)))
"""


def test_several_windows_do_not_mix_their_lines(path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
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
    history = read(path)
    assert history.bad_lines == 0
    assert sorted(record.id for record in history.records) == sorted(f"{a}-{b}" for a in range(3) for b in range(300))
    assert numbered(path, 1).exists()


def failing(error: int) -> Callable[..., int]:
    def write(*_: Any) -> int:
        raise OSError(error, os.strerror(error))

    return write


def test_a_full_disk_is_said_once_and_typing_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    log = a_log(path, warn=said.append)
    with monkeypatch.context() as patch:
        patch.setattr("os.write", failing(errno.ENOSPC))
        for _ in range(3):
            log.record(an_outcome())
    log.record(an_outcome())
    assert (len(said), log.lost) == (1, 3)
    assert "No space left on device" in said[0]
    assert len(read(path).records) == 1


def test_a_line_that_was_cut_costs_itself_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_log(path, warn=lambda _: None)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr("os.write", lambda file, data: write(file, data[:20]))
        log.record(an_outcome(id="cut"))
    log.record(an_outcome(id="whole"))
    history = read(path)
    assert ([record.id for record in history.records], history.bad_lines) == (["whole"], 1)


def test_a_line_that_another_window_did_not_finish_costs_itself_alone(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"time":1,"id":"to')
    a_log(path).record(an_outcome(id="whole"))
    history = read(path)
    assert ([record.id for record in history.records], history.bad_lines) == (["whole"], 1)


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


def test_a_warning_that_fails_does_not_stop_the_typing(path: Path) -> None:
    path.mkdir(parents=True)

    def broken(_: str) -> None:
        raise RuntimeError

    a_log(path, warn=broken).record(an_outcome())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"[1]",
        b"{}",
        b'{"time":"now","id":"1","outcome":"shown"}',
        b'{"time":true,"id":"1","outcome":"shown"}',
        b'{"time":1,"id":2,"outcome":"shown"}',
        b'{"time":1,"id":"1","outcome":"shown","signals":[]}',
        b'{"time":1,"id":"1","outcome":"shown","length":null}',
        b"[" * 100_000,
    ],
)
def test_a_line_that_is_no_outcome_is_skipped_and_counted(path: Path, line: bytes) -> None:
    log = a_log(path)
    log.record(an_outcome(id="before"))
    with path.open("ab") as file:
        file.write(line + b"\n")
    log.record(an_outcome(id="after"))
    history = read(path)
    assert [record.id for record in history.records] == ["before", "after"]
    assert history.bad_lines == bool(line)


def test_what_a_later_version_wrote_is_read_as_far_as_this_one_knows_it(path: Path) -> None:
    line = b'{"format":7,"time":1,"id":"1","outcome":"regretted","mood":[1,2],"signals":{"novelty":0.5}}'
    record = record_of(line)
    assert (record.outcome, record.signals) == ("regretted", {"novelty": 0.5})


def test_without_a_log_there_are_no_outcomes(path: Path) -> None:
    assert read(path) == OutcomeHistory((), 0)


@given(st.binary(max_size=200))
def test_no_line_brings_the_reader_down(line: bytes) -> None:
    try:
        record_of(line)
    except ValueError:
        return


@given(text=st.text(max_size=50), length=st.integers(0, 120), uri=st.text(max_size=40))
def test_any_outcome_makes_one_line_that_can_be_read(text: str, length: int, uri: str) -> None:
    outcome = an_outcome(text=text, accepted_length=length, uri=uri, outcome="partly_accepted", language_id=text)
    line = line_of(outcome, time=WALL, session="1", version="1", mask=str)
    assert line.count(b"\n") == 1
    assert record_of(line).text == text


def test_the_log_lies_in_the_users_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert outcome_log_path() == tmp_path / "calomel" / "outcomes.jsonl"
