from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.replay.recordings import texts
from tests.training.sources import Commits

from calomel.replay.events import Changed, LogError, Opened, ReplayLog, Selected, apply_edits
from calomel.replay.git import LeftOut, read_git
from calomel.replay.hunks import hunks_between, strokes


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commits:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_DATE", "2020-01-01T00:00:00Z")
    return Commits(tmp_path / "repository")


def test_a_commit_is_typed_and_ends_in_its_texts(history: Commits) -> None:
    history.commit("First", {"a.py": "x = 1\n", "b.py": "y = é\n"})
    history.commit("Second", {"a.py": "x = 1\n\n\ndef f():\n    return x\n", "b.py": "y = 2\n"})
    log = log_of(history)
    assert (log.kind, log.checks.end_content_right, log.problems) == ("git", True, [])
    assert texts(log.events) == {"a.py": "x = 1\n\n\ndef f():\n    return x\n", "b.py": "y = 2\n"}
    assert log.metadata["subject"] == "Second"
    changes = [event for event in log.events if isinstance(event, Changed)]
    assert {event.cause for event in changes} == {"typed"}
    # A word at a time, with pauses in between.
    assert max(len(edit.text) for event in changes for edit in event.edits) <= len("    \n") + 1
    times = [event.time for event in log.events]
    assert times == sorted(times)


def test_a_commit_of_such_files_alone_says_why(history: Commits) -> None:
    history.commit("Change", {"a.py": "f( 'x',1 )\n", "b.txt": b"\0\1", "c.txt": "c", "go.sum": "1"})
    history.commit("Change", {"a.py": 'f("x", 1,)\n', "b.txt": b"\0\2", "c.txt": None, "go.sum": "2"})
    reason = reason_of(history)
    assert reason == "nothing that somebody typed (a lock file, it was deleted, no text, only its form changed)"


def test_merges_reverts_and_programs_are_left_out(history: Commits) -> None:
    history.commit("Change", {"a.py": "a\n"})
    history.git("checkout", "-q", "-b", "side")
    history.commit("Change", {"b.py": "b\n"})
    history.git("checkout", "-q", "main")
    history.commit("Change", {"c.py": "c\n"})
    history.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    assert reason_of(history) == "a merge"
    history.commit('Revert "x"', {"a.py": "b\n"})
    assert reason_of(history) == "a revert"
    history.commit("Change", {"a.py": "c\n"}, author="dependabot[bot]")
    assert reason_of(history) == "written by a program (dependabot[bot])"
    history.commit("Change", {})
    assert reason_of(history) == "nothing that somebody typed (no change)"


def test_what_is_no_repository_is_said(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="git cannot read"):
        list(read_git(tmp_path / "nowhere"))


_LINES = st.lists(
    st.sampled_from(["def a(b):\n", "    return b\n", "\n", "x = é😀\r\n", "last", "a, b = (1, 2)\n"]), max_size=9
)


@settings(deadline=None)
@example(["def a(b):\n", "last", "last"], ["def a(b):\n", "last", "last", "x = é😀\r\n"], 0)
@given(_LINES, _LINES, st.integers(0, 3))
def test_typing_all_hunks_gives_the_other_text(old: list[str], new: list[str], turn: int) -> None:
    before, after = "".join(old), "".join(new)
    hunks = hunks_between("a.py", before, after)
    made: list[tuple[int, int]] = []
    text = before
    # In any order.
    for hunk in sorted(hunks, key=lambda each: (each.line + turn) % 4):
        start = hunk.start + sum(longer for line, longer in made if line < hunk.line)
        for stroke in strokes(hunk, start, "seed"):
            assert stroke.seconds > 0
            text = apply_edits(text, (stroke.edit,))
        made.append((hunk.line, sum(map(len, hunk.new)) - sum(map(len, hunk.old))))
    assert text == after


def test_commits_come_oldest_first_the_same_each_time_and_go_to_each_hunk_tests_last(history: Commits) -> None:
    for number in range(4):
        history.commit(
            f"Commit {number}", {"a_test.py": f"{number}\n", "b.py": f"x = {number}\n#\n#\n#\ny = {number}\n"}
        )
    logs = [log for log in read_git(history.folder, 3) if isinstance(log, ReplayLog)]
    assert [log.metadata["subject"] for log in logs] == ["Commit 1", "Commit 2", "Commit 3"]
    assert logs == list(read_git(history.folder, 3))
    opened = [event.document for event in logs[0].events if isinstance(event, Opened)]
    assert opened == ["b.py", "a_test.py"]
    assert [event.offset for event in logs[0].events if isinstance(event, Selected)] == [4, 16, 0]


def log_of(history: Commits) -> ReplayLog:
    found = next(iter(read_git(history.folder, 1)))
    assert isinstance(found, ReplayLog), found
    return found


def reason_of(history: Commits) -> str:
    found = next(iter(read_git(history.folder, 1)))
    assert isinstance(found, LeftOut), found
    return found.reason


def test_files_that_nobody_types_are_left_out(history: Commits) -> None:
    reasons = {"a_pb2.py": "generated:*_pb2.py", "package-lock.json": "a lock file", "vendor/a.py": "vendored"}
    for text in ("1\n", "2\n"):
        history.commit("Change", dict.fromkeys((*reasons, "a.py"), text))
    log = log_of(history)
    assert list(texts(log.events)) == ["a.py"]
    told = {problem.message for problem in log.problems}
    assert told == {f"Calomel leaves {name} out: {reason}." for name, reason in reasons.items()}
