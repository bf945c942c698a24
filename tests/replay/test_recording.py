from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.scripted import Recorder, name_of, shared, texts

from calomel.prompts.parts import Edit
from calomel.replay.events import Accepted, Cause, Changed, Closed, Expected, LogError, Offered, Opened
from calomel.replay.logs import read_keystrokes, read_log, read_logs
from calomel.replay.recorded import distinct_offers
from calomel.replay.recording import read_recording


@pytest.fixture
def recorder() -> Recorder:
    made = Recorder()
    made.document(0, "src\\a.ts", "let a = 1\n")
    return made


def test_a_recording_gives_its_texts_with_paths_as_prompts_name_them(recorder: Recorder) -> None:
    recorder.change(0, 2, [4, 5, "b"], [8, 9, "22"])
    log = read_recording("r", recorder.entries)
    assert texts(log.events) == {"src/a.ts": "let b = 22\n"}
    assert (log.problems, log.checks.content_ids_right) == ([], 1)
    assert log.events[0] == Opened(2, 0.0, "src/a.ts", "typescript", "let a = 1\n")


def test_an_edit_may_cut_a_character_in_half(recorder: Recorder) -> None:
    recorder.document(1, "b.py", "a😀b")  # d83d de00
    recorder.change(1, 2, [2, 3, "\ude01"])
    assert texts(read_recording("r", recorder.entries).events)["b.py"] == "a😁b"


def test_a_text_that_was_kept_comes_back(recorder: Recorder) -> None:
    recorder.change(0, 2, [0, 0, "x"])
    recorder.add("closed", id=0)
    recorder.add("restoreContent", id=0, contentId=name_of("let a = 1\n"), v=3)
    recorder.change(0, 4, [0, 3, "var"])
    log = read_recording("r", recorder.entries)
    assert texts(log.events)["src/a.ts"] == "var a = 1\n"
    assert log.checks.content_ids_right == 2
    assert [type(event) for event in log.events] == [Opened, Changed, Closed, Opened, Changed]


def test_an_offer_is_an_edit_of_the_text_on_the_screen(recorder: Recorder) -> None:
    recorder.document(1, "b.py", "😀 = 1\r\nx = 2\r\n")
    recorder.offer(1, 1, "[1,1 -> 1,4]", "y =")
    recorder.offer(1, 1, "[2,5 -> 2,6]", "22", error="canceled")
    log = read_recording("r", recorder.entries)
    offers = [event for event in log.events if isinstance(event, Offered)]
    assert [offer.edits for offer in offers] == [(Edit(0, 2, "y ="),)]
    assert (offers[0].source, offers[0].request, offers[0].inline_edit) == ("tester", "1", False)
    assert offers[0].asked == pytest.approx(offers[0].time - 0.1)


def test_what_the_person_did_next_is_expected(recorder: Recorder) -> None:
    log = read_recording("r", recorder.entries, {"edit": [[4, 5, "z"]], "relativePath": "../x/w/src/a.ts"})
    assert isinstance(log.events[-1], Expected)
    assert log.events[-1].alternatives == ("let z = 1\n",)


def test_a_wrong_offset_puts_the_document_aside_until_its_text_is_known_again(recorder: Recorder) -> None:
    recorder.document(1, "b.py", "b")
    recorder.change(0, 2, [0, 0, "good "])
    wrong = recorder.change(0, 3, [900, 901, "x"])
    recorder.change(0, 4, [0, 0, "of no use"])
    recorder.change(1, 2, [1, 1, "c"])
    recorder.add("setContent", id=0, content="new", v=5)
    recorder.change(0, 6, [3, 3, "!"])
    log = read_recording("r", recorder.entries)
    assert texts(log.events) == {"src/a.ts": "new!", "b.py": "bc"}
    assert [problem.entry for problem in log.problems] == [wrong]
    message = log.problems[0].message
    assert "900-901" in message
    assert "later ones of src/a.ts" in message


@pytest.mark.parametrize(
    "entry",
    [
        17,
        {},
        {"kind": "changed"},
        {"kind": "changed", "id": 0, "edit": [[0, 1]], "v": 2},
        {"kind": "changed", "id": 44, "edit": [[0, 0, "x"]], "v": 2},
        {"kind": "changed", "id": 0, "edit": [[0, 2, "x"], [1, 3, "y"]], "v": 2},
        {"kind": "setContent", "id": 0, "content": None},
        {"kind": "selectionChanged", "id": 0, "selection": [[0, 99]]},
        {"kind": "documentEvent", "id": 0, "data": {"sourceId": "TextModel.setChangeReason", "source": "a", "v": 9}},
        {"kind": "documentEvent", "id": [], "data": {"sourceId": "TextModel.setChangeReason", "source": 1, "v": []}},
    ],
)
def test_a_wrong_entry_is_named_and_the_rest_is_read(recorder: Recorder, entry: Any) -> None:
    recorder.document(1, "b.py", "b")
    recorder.entries.append(entry)
    wrong = len(recorder.entries) - 1
    recorder.change(1, 2, [1, 1, "c"])
    log = read_recording("r", recorder.entries)
    assert [problem.entry for problem in log.problems] == [wrong]
    assert texts(log.events)["b.py"] == "bc"


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["sourceId", "v", "kind"]), inner),
    max_leaves=6,
)
_NAMES = ["id", "v", "edit", "time", "content", "contentId", "selection", "data", "relativePath"]
_KINDS = ["changed", "setContent", "storeContent", "restoreContent", "selectionChanged", "event", "documentEvent",
          "focused", "opened", "closed", "documentEncountered", "meta", "header", "odd"]  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.builds(
            lambda kind, values: {"kind": kind, **values},
            st.sampled_from(_KINDS),
            st.dictionaries(st.sampled_from(_NAMES), _VALUES),
        )
    )
)
def test_whatever_stands_in_a_recording_is_read_without_an_error(entries: list[dict[str, Any]]) -> None:
    log = read_recording("r", entries)
    texts(log.events)
    times = [event.time for event in log.events]
    assert times == sorted(times)
    assert all(0 <= problem.entry < max(1, len(entries)) for problem in log.problems)


@settings(deadline=None)
@given(st.text(alphabet="a😀\r\n", max_size=8), st.data())
def test_changes_of_any_text_give_what_javascript_gives(text: str, data: st.DataObject) -> None:
    recorder = Recorder()
    recorder.document(0, "a.txt", text)
    naive = text.encode("utf-16-le")
    for version in range(2, 6):
        places = st.integers(0, len(naive) // 2)
        start, end = sorted((data.draw(places), data.draw(places)))
        new = data.draw(st.text(alphabet="b😁\n", max_size=3))
        after = naive[: 2 * start] + new.encode("utf-16-le") + naive[2 * end :]
        try:
            after.decode("utf-16-le")
        except UnicodeDecodeError:
            continue  # Half a character: its own test.
        naive = after
        recorder.change(0, recorder.entries[-1]["v"] + 1, [start, end, new])
        recorder.add("storeContent", id=0, contentId=name_of(naive.decode("utf-16-le")), v=recorder.entries[-1]["v"])
        del version
    log = read_recording("r", recorder.entries)
    assert texts(log.events)["a.txt"] == naive.decode("utf-16-le")
    assert (log.checks.content_ids_wrong, log.problems) == (0, [])


@pytest.mark.parametrize("text", ["", "hello", "[1, 2]", '{"a": 1}', "\0\1", "{", "<html>"])
def test_what_is_no_log_is_said_in_a_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(LogError, match="not a log Calomel can read"):
        read_log(path)


@pytest.fixture
def short() -> Recorder:
    made = Recorder()
    made.document(0, "a.ts", "ab\n")
    return made


def test_a_suggestion_that_comes_again_while_typing_along_is_one(short: Recorder) -> None:
    short.offer(0, 1, "[1,3 -> 1,3]", "cde")
    short.change(0, 2, [2, 2, "c"])
    short.offer(0, 2, "[1,1 -> 1,4]", "abcde")
    short.change(0, 3, [3, 3, "x"])
    found = distinct_offers(read_recording("r", short.entries).events)
    assert [(each.before, each.after, each.accepted) for each in found] == [("ab\n", "abcde\n", False)]


def test_what_was_taken_is_known_whole_or_in_part(short: Recorder) -> None:
    short.offer(0, 1, "[1,3 -> 1,3]", "cd ef")
    short.change(0, 2, [2, 2, "cd"])
    short.reason(0, 2, "inlineSuggestion.accept")
    short.offer(0, 2, "[1,1 -> 1,5]", "abcd ef")
    short.change(0, 3, [0, 4, "abcd ef"])
    short.reason(0, 3, "inlineSuggestion.accept")
    short.offer(0, 3, "[1,1 -> 1,1]", "z")
    found = distinct_offers(read_recording("r", short.entries).events)
    assert [(each.partly, each.accepted) for each in found] == [(True, True), (False, False)]


def test_a_truncated_file_is_read_up_to_where_it_ends(recorder: Recorder, tmp_path: Path) -> None:
    for version in range(2, 30):
        recorder.change(0, version, [0, 0, "x"])
    whole = json.dumps({"log": recorder.entries})
    starts = [found.start() for found in re.finditer(r'{"kind"', whole)]
    path = tmp_path / "a.recording.w.json"
    for end in range(len(whole) - 1, len(whole) - 400, -7):
        path.write_text(whole[:end])
        log = read_log(path)
        count = sum(start < end for start in starts) - (0 if whole[:end].rstrip(" ,]").endswith("}") else 1)
        assert sum(isinstance(event, Changed) for event in log.events) == count - 4
        assert log.problems[-1].entry == count
        assert "is cut off" in log.problems[-1].message
    packed = gzip.compress(whole.encode())
    (tmp_path / "a.json.gz").write_bytes(packed[: -len(packed) // 10])
    log = read_log(tmp_path / "a.json.gz")
    assert any(isinstance(event, Changed) for event in log.events)
    assert "is cut off" in log.problems[-1].message
    lines = [json.dumps(entry) for entry in recorder.entries]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, lines[-1][:20]]))
    log = read_log(tmp_path / "a.jsonl")
    assert sum(isinstance(event, Changed) for event in log.events) == 28
    assert [problem.entry for problem in log.problems] == [len(lines)]


def test_logs_that_were_joined_are_read_one_after_the_other(recorder: Recorder, tmp_path: Path) -> None:
    for version in (2, 3):
        recorder.change(0, version, [0, 0, "x"])
    whole = json.dumps({"log": recorder.entries})
    lines = "\n".join(json.dumps(entry) for entry in recorder.entries)
    trace = json.dumps({"startContent": "", "endContent": "a", "txns": [{"time": 1, "patches": [[0, 0, "a"]]}]})
    path = tmp_path / "a.json"
    for text, count, cut in (
        (whole + whole, 2, []),
        (f"{whole}\n\ufeff{whole}\n{whole}", 3, []),
        (whole[:-20] + whole, 2, [0]),
        (whole + whole[:-20], 2, [1]),
        (f"{lines}\n{lines}\n", 2, []),
        (lines + lines, 2, []),
        (trace + trace, 2, []),
        (trace + whole, 2, []),
    ):
        path.write_text(text)
        logs = read_logs(path)
        assert [log.name for log in logs] == ["a", "a-2", "a-3"][:count]
        assert [at for at, log in enumerate(logs) if any("cut off" in each.message for each in log.problems)] == cut
        assert all(any(isinstance(event, Changed) for event in log.events) for log in logs)


def test_a_real_session_has_every_text_and_every_accepted_suggestion() -> None:
    log = read_log(shared("recordings/vscode-session-a.recording.w.json"))
    checks = log.checks
    assert (checks.content_ids_right, checks.content_ids_wrong, checks.accepts) == (27, 0, 56)
    assert log.problems == []
    assert sum(isinstance(event, Changed) for event in log.events) == 2114
    assert sum(isinstance(event, Offered) for event in log.events) == 801
    assert log.events[-1].time == pytest.approx(3142.9, abs=1)
    found = distinct_offers(log.events)
    # Ten clicks of the 56 took a word each, of a few suggestions.
    assert (len(found), sum(each.accepted for each in found)) == (353, 46)
    assert 3 <= sum(each.partly for each in found) <= 10


@pytest.mark.parametrize(
    ("source", "cause"),
    [("type", "typed"), ("snippet", "other"), ("inlineSuggestion.accept", "accept"), ("?", "other")],
)
def test_a_reason_becomes_a_cause_and_an_accepted_suggestion_stands_before_its_change(
    recorder: Recorder, source: str, cause: Cause
) -> None:
    entry = recorder.change(0, 2, [9, 9, "23"])
    recorder.add("selectionChanged", id=0, selection=[[11, 11]])
    recorder.reason(0, 2, source)
    log = read_recording("r", recorder.entries)
    edits = (Edit(9, 9, "23"),)
    accepted = [Accepted(entry, 0.4, "src/a.ts", edits)] if cause == "accept" else []
    assert log.events[1:-1] == [*accepted, Changed(entry, 0.4, "src/a.ts", edits, cause)]
    assert log.checks.accepts == len(accepted)


def trace(
    *patches: list[Any], start: str = "", end: str | None = None, times: list[Any] | None = None
) -> dict[str, Any]:
    stamps = times or [f"2020-01-01T00:00:{number:02}.000Z" for number in range(len(patches))]
    return {
        "startContent": start,
        "endContent": end,
        "txns": [{"time": time, "patches": each} for time, each in zip(stamps, patches, strict=True)],
    }


def test_a_trace_ends_in_its_end_content() -> None:
    log = read_keystrokes("rustcode", trace([[0, 0, "fn 😀"]], [[4, 0, "!"], [0, 2, "FN"]], end="FN 😀!"))
    assert texts(log.events) == {"skiplist.rs": "FN 😀!"}
    assert (log.checks.end_content_right, log.problems) == (True, [])
    assert log.events[0] == Opened(0, 0.0, "skiplist.rs", "rust", "")


@pytest.mark.parametrize("wrong", [[[99, 0, "x"]], [[0, -1, ""]], [[0, 0]], None])
def test_a_wrong_transaction_ends_what_is_known(wrong: Any) -> None:
    log = read_keystrokes("a.py", trace([[0, 0, "ab"]], wrong, [[0, 0, "y"]], end="yab"))
    assert texts(log.events) == {"a.py": "ab"}
    assert log.problems[0].entry == 1
    assert "Calomel skips it and the 1 after it" in log.problems[0].message
    assert log.checks.end_content_right is False


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=12), st.data())
def test_changes_give_what_the_patches_give(start: str, data: st.DataObject) -> None:
    text, transactions = start, []
    for _ in range(data.draw(st.integers(0, 5))):
        patches = []
        for _ in range(data.draw(st.integers(0, 4))):
            at = data.draw(st.integers(0, len(text)))
            removed = data.draw(st.integers(0, len(text) - at))
            new = data.draw(st.text(max_size=3))
            text = text[:at] + new + text[at + removed :]
            patches.append([at, removed, new])
        transactions.append(patches)
    log = read_keystrokes("a.py", trace(*transactions, start=start, end=text))
    assert texts(log.events) == {"a.py": text}
    assert log.checks.end_content_right


@pytest.mark.parametrize(("name", "count"), [("rustcode", 36_981), ("sveltecomponent", 18_335)])
def test_a_real_trace_ends_in_its_end_content(name: str, count: int) -> None:
    log = read_log(shared(f"keystrokes/{name}.json.gz"))
    assert log.checks.end_content_right is True
    assert log.problems == []
    assert len({event.entry for event in log.events}) == count
    times = [event.time for event in log.events]
    assert times == sorted(times)


def test_a_truncated_trace_is_read_up_to_where_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    whole = json.dumps(trace(*([[0, 0, "x"]] for _ in range(9)), end="x"))
    path.write_text(whole[:-30])
    log = read_log(path)
    assert log.kind == "keystrokes"
    assert texts(log.events) == {"a.txt": "x" * 8}
    assert [problem.entry for problem in log.problems] == [8]
    path.write_text(whole)
    log = read_log(path)
    assert log.checks.end_content_right is False
    assert [problem.message for problem in log.problems] == ["The text at the end is not endContent."]
