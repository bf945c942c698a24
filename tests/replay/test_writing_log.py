from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard

from calomel.replay.events import Changed, LogError, Opened, ReplayLog, Selected, apply_edits
from calomel.replay.stories import read_packed_logs, writing_log

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


def log_of(text: str = FILE, path: str = "shop/measures.py", package: str = "") -> ReplayLog:
    log = writing_log(path, text, package)
    assert log is not None
    return log


def texts(log: ReplayLog) -> list[str]:
    found: list[str] = []
    for event in log.events:
        if isinstance(event, Opened):
            found.append(event.text)
        elif isinstance(event, Changed):
            found.append(apply_edits(found[-1], event.edits))
    return found


def edits(log: ReplayLog) -> list[tuple[int, str]]:
    """How much each change removes, and what it writes."""
    return [
        (edit.end - edit.start, edit.text) for event in log.events if isinstance(event, Changed) for edit in event.edits
    ]


def test_at_the_end_the_file_is_what_it_was() -> None:
    log = log_of()
    assert texts(log)[-1] == FILE
    assert log.checks.end_content_right is True
    assert len(texts(log)[0]) < len(FILE)
    opened = log.events[0]
    assert isinstance(opened, Opened)
    assert (opened.document, opened.language_id) == ("shop/measures.py", "python")


def test_somebody_writes_several_blocks_from_top_to_bottom() -> None:
    places = [event.offset for event in log_of().events if isinstance(event, Selected)]
    assert 2 <= len(places) <= 4
    assert places == sorted(places)
    assert len(set(places)) == len(places)


def test_some_of_what_is_typed_is_taken_back() -> None:
    made = [log_of(path=f"shop/measures{number}.py") for number in range(4)]
    changes = [edit for log in made for edit in edits(log)]
    deletions = [removed for removed, text in changes if removed and not text]
    assert set(deletions) == {1}
    # As much as in a recorded session, about.
    assert 0.05 < len(deletions) / len(changes) < 0.4
    for log in made:
        written = sum(len(text) for _, text in edits(log))
        removed = sum(removed for removed, _ in edits(log))
        assert removed > 0
        assert written - removed == len(FILE) - len(texts(log)[0])
        assert log.checks.end_content_right is True


def test_a_file_is_written_the_same_way_each_time_and_another_one_otherwise() -> None:
    assert log_of().events == log_of().events
    assert log_of().name == log_of().name
    other = log_of(FILE + "# more\n")
    assert other.name != log_of().name
    assert [event.offset for event in other.events if isinstance(event, Selected)] != [
        event.offset for event in log_of().events if isinstance(event, Selected)
    ]


def test_time_only_goes_forward_and_keys_take_theirs() -> None:
    events = log_of().events
    times = [event.time for event in events]
    assert times == sorted(times)
    assert times[-1] > 0.1 * len(events)


def test_of_a_long_file_a_part_is_written_in_its_surroundings() -> None:
    long = "".join(BLOCK.format(number) for number in range(400))
    log = log_of(long)
    end = texts(log)[-1]
    assert 8_000 < len(end) <= 12_000
    assert end in long
    assert long[long.index(end) - 1] == "\n" or long.startswith(end)


def test_a_last_line_without_an_end_gets_one() -> None:
    assert texts(log_of(FILE.rstrip()))[-1] == FILE.rstrip() + "\n"


@pytest.mark.parametrize("text", ["", "x = 1\n", "x = 1\n" * 200, FILE.replace("\n", "\r\n"), BLOCK.format(1)])
def test_a_file_with_nothing_to_write_is_left_out(text: str) -> None:
    assert writing_log("a.py", text) is None


def test_files_of_a_package_stay_together() -> None:
    assert log_of(package="shop-1.0").metadata == {"group": "shop-1.0"}
    assert log_of().metadata == {"group": "shop"}


def test_indentation_words_and_unicode_survive() -> None:
    text = FILE.replace("total", "größe_😀").replace("    ", "\t")
    assert texts(log_of(text))[-1] == text


def packed(path: Path, *rows: dict[str, str]) -> Path:
    path.write_bytes(zstandard.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def test_a_corpus_is_a_log_for_each_file_that_has_enough(tmp_path: Path) -> None:
    rows = (
        {"path": "a/one.py", "text": FILE, "package": "a"},
        {"path": "a/tiny.py", "text": "x\n", "package": "a"},
        {"path": "b/two.py", "text": FILE},
    )
    logs = read_packed_logs(packed(tmp_path / "corpus.jsonl.zst", *rows))
    assert [log.metadata["group"] for log in logs] == ["a", "b"]
    assert logs[0].events == log_of(path="a/one.py").events


def test_what_is_no_corpus_is_said(tmp_path: Path) -> None:
    path = packed(tmp_path / "corpus.zst", {"path": "a/one.py", "text": FILE}, {"path": "a"})
    with pytest.raises(LogError, match=r"corpus\.zst holds neither stories .*'text' is missing"):
        read_packed_logs(path)
