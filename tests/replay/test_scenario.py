from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.recordings import shared, texts

from calomel.prompts.parts import Edit
from calomel.replay.events import Changed, Closed, Expected, Opened, Selected
from calomel.replay.logs import read_log
from calomel.replay.scenario import parse_scenario, read_scenario, split

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
