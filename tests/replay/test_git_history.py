from __future__ import annotations

import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.bench.conftest import BILL, line, rename, write_stories
from tests.replay.scripted import shared, texts
from tests.training.sources import Commits

from calomel.prompts.parts import Edit
from calomel.replay.events import Changed, Closed, Expected, Focused, LogError, Opened, ReplayLog, Selected, apply_edits
from calomel.replay.git import LeftOut, hunks_between, read_git, strokes
from calomel.replay.logs import read_log, read_logs
from calomel.replay.scenario import parse_scenario, read_scenario, split
from calomel.replay.stories import writing_log


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
    assert reason == "nothing typed by hand (a lock file, it was deleted, no text, only its form changed)"


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
    assert reason_of(history) == "nothing typed by hand (no change)"


def test_names_and_subjects_may_hold_anything(history: Commits) -> None:
    odd = "a\rb\x0bc\x1c\x1b[31md\x85e\u2028f"
    history.commit(odd, {"a.py": "x = 1\n", "b\x1b[2J\n.py": "y\n"}, author="an\x0cn")
    history.git("-c", "i18n.commitEncoding=latin-1", "commit", "-q", "--allow-empty", "-m", "\udce9")
    history.commit("Last", {"a.py": "x = 2\n", "b\x1b[2J\n.py": "z\n"})
    logs = list(read_git(history.folder, 9))
    assert [type(log).__name__ for log in logs] == ["ReplayLog", "LeftOut", "ReplayLog"]
    assert isinstance(logs[0], ReplayLog)
    assert str(logs[0].metadata["subject"]).startswith("a\rb\x0bc\x1c\x1b[31md")


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


def test_without_zstandard_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "calomel.replay.stories", None)
    with pytest.raises(LogError, match=r"extra `bench`"):
        read_logs(tmp_path / "any.jsonl.zst")


BLOCK = '''def measure_{0}(values, weight):
    """The weighted measure number {0}."""
    total = 0.0
    for value in values:
        if value is None:
            continue
        total += value * weight + {0}
    return total


'''
FILE = "import math\n\n\n" + "".join(BLOCK.format(number) for number in range(30))


def written(text: str = FILE, path: str = "shop/measures.py", package: str = "") -> ReplayLog:
    log = writing_log(path, text, package)
    assert log is not None
    return log


@pytest.mark.parametrize("text", ["", "x = 1\n", "x = 1\n" * 200, FILE.replace("\n", "\r\n"), BLOCK.format(1)])
def test_a_file_with_nothing_to_write_is_left_out(text: str) -> None:
    assert writing_log("a.py", text) is None


def test_a_corpus_is_a_log_for_each_file_that_has_enough(tmp_path: Path) -> None:
    rows = (
        {"path": "a/one.py", "text": FILE, "package": "a"},
        {"path": "a/tiny.py", "text": "x\n", "package": "a"},
        {"path": "b/two.py", "text": FILE},
    )
    logs = read_logs(write_stories(tmp_path / "corpus.jsonl.zst", *rows))
    assert [log.metadata["group"] for log in logs] == ["a", "b"]
    assert logs[0].events == written(path="a/one.py").events


def states(log: ReplayLog) -> list[str]:
    """Of the document, after each change."""
    found: list[str] = []
    for event in log.events:
        if isinstance(event, Opened):
            found.append(event.text)
        elif isinstance(event, Changed):
            found.append(apply_edits(found[-1], event.edits))
    return found


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no zstandard", "is damaged"),
        (zstandard.compress(b"{torn\n"), "is damaged"),
        (zstandard.compress(b'{"name": "a"}\n'), "has neither edit stories nor files"),
        (zstandard.compress(b'{"kind": "rename"}\n'), ""),
        (zstandard.compress(b'{"path": "a/one.py", "text": "x"}\n{"path": "a"}\n'), ".*'text' is missing"),
        (None, ""),
    ],
)
def test_what_is_packed_otherwise_is_said_by_name(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "bad.jsonl.zst"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LogError, match=rf"bad\.jsonl\.zst.* ?{why}"):
        read_logs(path)


def test_a_story_is_typed_to_its_end_the_same_each_time(tmp_path: Path) -> None:
    path = write_stories(tmp_path / "s.jsonl.zst", rename(), line(), rename(BILL.replace("\n", "\r\n")))
    logs = read_logs(path)
    renamed, added, windows = logs
    assert states(renamed)[0] == BILL
    assert states(renamed)[-1] == BILL.replace("total", "amount")
    assert states(added)[-1] == BILL.replace("    return", "    print(total)\n    return")
    assert states(windows)[-1] == BILL.replace("total", "amount").replace("\n", "\r\n")
    assert renamed.checks.end_content_right is True
    assert not renamed.problems
    opened, focused, *_ = renamed.events
    assert isinstance(opened, Opened)
    assert isinstance(focused, Focused)
    assert (opened.language_id, opened.document) == ("python", "shop/bill.py")
    # What is of one package stays together.
    assert (renamed.kind, renamed.metadata) == ("story", {"group": "shop", "kind": "rename"})
    assert [log.events for log in read_logs(path)] == [log.events for log in logs]
    assert len({log.name for log in logs}) == 3
    for log in logs:
        times = [event.time for event in log.events]
        assert times == sorted(times)
        assert times[-1] > 3


@pytest.mark.parametrize("text", [FILE, FILE.replace("total", "größe_😀").replace("    ", "\t"), FILE.rstrip()])
def test_at_the_end_the_file_is_what_it_was(text: str) -> None:
    log = written(text)
    assert states(log)[-1] == (text if text.endswith("\n") else f"{text}\n")
    assert log.checks.end_content_right is True
    assert len(states(log)[0]) < len(text)
    opened = log.events[0]
    assert isinstance(opened, Opened)
    assert (opened.document, opened.language_id) == ("shop/measures.py", "python")
    assert log.metadata == {"group": "shop"}
    assert written(text).events == log.events
    assert written(text, package="shop-1.0").metadata == {"group": "shop-1.0"}
    times = [event.time for event in log.events]
    assert times == sorted(times)
    assert times[-1] > 0.1 * len(times)


FIXTURES = Path(__file__).parent / "fixtures"


def test_silence_is_asked_for_at_each_position() -> None:
    log = read_log(FIXTURES / "quiet.txtar")
    asked = [event for event in log.events if isinstance(event, Expected)]
    # Behind the end of a line is its end; columns are bytes.
    assert [(event.name, event.offset) for event in asked] == [("quiet@L1", 5), ("quiet@L2", 7), ("quiet@L1", 3)]
    assert {event.alternatives for event in asked} == {(None,)}
    assert [event.offset for event in log.events if isinstance(event, Selected)] == [5, 7, 3]
    assert log.events[0].document == "eval.ts"
    assert ["nowhere" in problem.message for problem in log.problems] == [True]


@pytest.mark.parametrize("expected", ["", "\n", "-- expected --\n", "-- expected --\n\n"])
def test_an_empty_expected_asks_for_silence(expected: str) -> None:
    assert parse_scenario(f"-- buffer.txt --\nx\n{expected}").expected is None


@settings(deadline=None)
@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_any_text_is_read_without_an_error(head: str, buffer: str, history: str) -> None:
    log = read_scenario(f"{head}\n-- buffer.txt --\n{buffer}\n-- history --\n{history}\n")
    text = texts(log.events)[log.events[0].document]
    for event in log.events:
        if isinstance(event, Expected):
            assert event.offset is not None
            assert 0 <= event.offset <= len(text)


def test_real_scenarios_are_read_with_nothing_to_say() -> None:
    files = sorted(shared("next-edit-scenarios").glob("*.txtar"))
    logs = [read_log(file) for file in files]
    assert len(logs) == 14
    assert [log.problems for log in logs] == [[]] * 14
    # Ten that ask for an edit, once each; four that ask for silence, at each of their positions.
    assert sum(isinstance(event, Expected) for log in logs for event in log.events) == 10 + 3 + 3 + 2 + 2
    asked = next(event for event in logs[2].events if isinstance(event, Expected))
    text = texts(logs[2].events)["queue.go"]
    assert text[: asked.offset].endswith("q.conn.Publish(")


def test_a_scenario_replays_what_was_edited_then_asks() -> None:
    path = FIXTURES / "rename.txtar"
    log = read_log(path)
    text = "# é\ndef price(count):\n    return amount * 2\n"
    assert (log.name, log.kind) == ("rename-é", "scenario")
    assert log.events[:2] == [
        Opened(0, 0.0, "shop/price.py", "python", text.replace("count", "amount")),
        Changed(0, 12.0, "shop/price.py", (Edit(4, 22, "def price(count):"),), "other"),
    ]
    asked = log.events[-1]
    assert isinstance(asked, Expected)
    assert asked.alternatives == (text.replace("amount", "count"),)
    assert (asked.offset, asked.manual) == (text.index("amount") + 1, True)
    assert texts(log.events)["shop/price.py"] == text
    # The edit of another file is replayed there.
    there = [event for event in log.events if event.document == "shop/cart.py"]
    assert [type(event) for event in there] == [Opened, Changed, Closed]
    assert texts(there) == {"shop/cart.py": "x = 2"}
    # What is not known is said with its line.
    lines = path.read_text().splitlines()
    assert [lines[problem.entry] for problem in log.problems] == ["wind: north", "fly away", "-- extra.txt --"]


@pytest.mark.parametrize(
    ("text", "comment", "files"),
    [
        (
            "About it.\nkey: value\n-- a.txt --\none\n\n-- folder/b.txt --\n-- no mark\n",
            "About it.\nkey: value\n",
            {"a.txt": "one\n\n", "folder/b.txt": "-- no mark\n"},
        ),
        ("one\ntwo", "one\ntwo", {}),
        ("-- a --", "", {"a": ""}),
        ("-- a --\r\none\r\n", "", {"a": "one\r\n"}),
    ],
)
def test_an_archive_is_a_comment_and_files(text: str, comment: str, files: dict[str, str]) -> None:
    assert split(text) == (comment, files)
