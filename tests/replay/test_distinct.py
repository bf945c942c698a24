from __future__ import annotations

import pytest
from tests.replay.recordings import Recorder, shared

from calomel.replay.logs import read_log
from calomel.replay.recorded import distinct_offers
from calomel.replay.recording import read_recording


@pytest.fixture
def recorder() -> Recorder:
    made = Recorder()
    made.document(0, "a.ts", "ab\n")
    return made


def test_a_suggestion_that_comes_again_while_typing_along_is_one(recorder: Recorder) -> None:
    recorder.offer(0, 1, "[1,3 -> 1,3]", "cde")
    recorder.change(0, 2, [2, 2, "c"])
    recorder.offer(0, 2, "[1,1 -> 1,4]", "abcde")
    recorder.change(0, 3, [3, 3, "x"])
    found = distinct_offers(read_recording("r", recorder.entries).events)
    assert [(each.before, each.after, each.accepted) for each in found] == [("ab\n", "abcde\n", False)]


def test_a_suggestion_that_was_typed_against_is_another_when_it_comes_later(recorder: Recorder) -> None:
    recorder.offer(0, 1, "[1,3 -> 1,3]", "cde")
    recorder.offer(0, 1, "[1,3 -> 1,3]", "xyz")
    recorder.change(0, 2, [2, 2, "!"])
    recorder.offer(0, 2, "[1,1 -> 1,4]", "abcde")
    found = distinct_offers(read_recording("r", recorder.entries).events)
    assert [each.after for each in found] == ["abcde\n", "abxyz\n", "abcde\n"]


def test_what_was_taken_is_known_whole_or_in_part(recorder: Recorder) -> None:
    recorder.offer(0, 1, "[1,3 -> 1,3]", "cd ef")
    recorder.change(0, 2, [2, 2, "cd"])
    recorder.reason(0, 2, "inlineSuggestion.accept")
    recorder.offer(0, 2, "[1,1 -> 1,5]", "abcd ef")
    recorder.change(0, 3, [0, 4, "abcd ef"])
    recorder.reason(0, 3, "inlineSuggestion.accept")
    recorder.offer(0, 3, "[1,1 -> 1,1]", "z")
    found = distinct_offers(read_recording("r", recorder.entries).events)
    assert [(each.partly, each.accepted) for each in found] == [(True, True), (False, False)]


def test_the_clicks_of_a_real_session_find_their_suggestions() -> None:
    log = read_log(shared("recordings/vscode-session-a.recording.w.json"))
    found = distinct_offers(log.events)
    # Ten clicks of the 56 took a word each, of a few suggestions.
    assert (len(found), sum(each.accepted for each in found)) == (353, 46)
    assert 3 <= sum(each.partly for each in found) <= 10
