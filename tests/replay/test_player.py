from __future__ import annotations

import math
import time
from typing import Any

import pytest
from tests.replay.scripted import Scripted, log_of, moments, player_of, replayed, typed

from calomel.prompts.parts import Edit
from calomel.replay.events import Accepted, Changed, Event, Expected, Offered, Opened, ReplayLog
from calomel.replay.opportunity import ReplayOptions
from calomel.replay.recorded import assistant_report, filtered_offers
from calomel.replay.runs import replay_log
from calomel.selectivity.sample import Sample


def test_a_suggestion_in_a_pause_is_judged_by_what_the_person_writes_then() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("compute(1)\n", 4, 4.0, entry=5), *typed("y", 15, 80.0, entry=20))
    result = replayed(log, Scripted({"x = ": "compute(1)"}))
    first = result.opportunities[0]
    assert (first.shown, first.silence, first.kind, first.path, first.language_id) == (
        True, None, "fill", "a.py", "python",
    )  # fmt: skip
    assert first.entry == 4
    assert first.time == pytest.approx(1.3)
    found = first.candidate
    assert found is not None
    assert (found.outcome, found.accepted_characters, found.saved_characters, found.kept) == ("accepted", 10, 9, True)
    assert (found.before, found.after, found.expected) == ("x = ", "x = compute(1)", "x = compute(1)")
    assert found.edits == (Edit(4, 4, "compute(1)"),)
    # The whole text counts: both of its two likelihoods.
    assert found.confidence == pytest.approx(0.9**2**0.25)
    assert found.signals["characters_inserted"] == 10.0
    assert (first.computed_tokens, first.cached_tokens) == (40, 60)
    assert found.given == pytest.approx(4.9)
    # From the keystroke to the answer: the wait for a pause, and 50 ms of the model.
    assert 50.0 < first.latency_ms < 400.0
    assert result.text_right


def test_nothing_else_is_asked_while_the_person_writes_what_was_accepted() -> None:
    slowly = typed("compute(1)", 4, 4.0, gap=1.0, entry=5)
    model = Scripted({"x = ": "compute(1)", "comp": "ile()"})
    result = replayed(log_of(*typed("x = ", 0, 1.0), *slowly), model)
    # What comes after it is asked for again.
    assert moments(result) == [(None, "accepted"), ("empty", None)]
    assert result.taken == 9


def test_what_the_gate_held_back_is_judged_too() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("compute(1)", 4, 4.0, entry=5))
    result = replayed(log, Scripted({"x = ": ("compute(1)", 0.01)}))
    first = result.opportunities[0]
    assert moments(result)[0] == ("low_confidence", "accepted")
    assert not first.shown
    assert first.candidate is not None
    assert first.candidate.confidence == pytest.approx(0.01**2**0.25)
    eager = replayed(log, Scripted({"x = ": ("compute(1)", 0.01)}), ReplayOptions(latency=0.05, aggressiveness=0.0))
    assert moments(eager)[0] == (None, "accepted")


def test_a_fixed_latency_gives_the_same_however_slow_the_machine_is() -> None:
    log = log_of(*typed("x = ", 0, 1.0), *typed("other", 4, 4.0, entry=5))
    slow = Scripted({"x = ": "compute(1)"}, busy=lambda: 0.03)
    assert replayed(log, slow) == replayed(log, Scripted({"x = ": "compute(1)"}))


def test_a_measured_model_that_is_too_slow_is_given_up_at_the_next_key() -> None:
    log = log_of(Changed(1, 1.0, "a.py", (Edit(0, 0, "x = "),)), *typed("o", 4, 1.5, entry=5))
    model = Scripted({"x = ": "compute(1)", "x = o": ""}, busy=lambda: 30.0 if len(model.requests) == 1 else 0.0)
    result = replayed(log, model, ReplayOptions(latency="measured", debounce_seconds=0.1))
    assert [silence for silence, _ in moments(result)] == ["superseded", "empty"]


def test_the_suggester_sees_what_the_editor_would_have_sent() -> None:
    text = "päth = '😀'\r\nx = \r\nend\r\n"
    at = text.index("x = ") + 4
    log = log_of(
        Changed(1, 1.0, "a.py", (Edit(0, 4, "pfäd"), Edit(8, 9, "🎈🎈"))),
        Changed(2, 2.0, "a.py", (Edit(at + 1, at + 1, "1"),)),
        text=text,
    )
    model = Scripted({})
    player, result = player_of(log, model)
    after = "pfäd = '🎈🎈'\r\nx = 1\r\nend\r\n"
    asked = model.requests[-1].parts
    assert asked.prefix + asked.suffix == after.replace("\r\n", "\n")
    assert asked.prefix.endswith("x = 1")
    assert asked.path == "a.py"
    document = next(iter(player.editor.workspace.documents.values()))
    assert document.text == after
    assert result.text_right


def test_recorded_offers_are_judged_by_the_same_rule() -> None:
    offer = (Edit(4, 4, "compute(1)"),)
    log = log_of(
        *typed("x = ", 0, 1.0),
        Offered(5, 1.5, "a.py", offer, "assistant", "r1", asked=1.3),
        Offered(5, 1.5, "a.py", (Edit(4, 4, "another()"),), "assistant", "r1", asked=1.3),
        *typed("c", 4, 2.0, entry=6),
        Offered(7, 2.1, "a.py", (Edit(5, 5, "ompute(1)"),), "assistant", "r2", asked=2.0),
        Accepted(8, 2.5, "a.py", (Edit(5, 5, "ompute(1)"),)),
        Changed(8, 2.5, "a.py", (Edit(5, 5, "ompute(1)"),), "accept"),
    )
    result = replayed(log, Scripted({}))
    assert (result.real_offers, result.real_accepts) == (2, 1)
    (only,) = result.recorded
    assert only.candidate is not None
    assert (only.candidate.outcome, only.candidate.source, only.real_outcome) == ("accepted", "assistant", "accepted")
    assert only.latency_ms == pytest.approx(200.0)
    assert only.shown
    assert only.candidate.confidence is None


def test_a_question_of_a_log_is_judged_by_its_right_answers() -> None:
    log = log_of(
        Changed(1, 1.0, "a.py", (Edit(4, 4, " "),)),
        Expected(2, 13.0, "a.py", ("x =  value\n", "x =  compute(1)\n", None), offset=5, name="case"),
        text="x = \n",
        kind="scenario",
    )
    result = replayed(log, Scripted({"x =  ": "compute(1)"}))
    (only,) = result.opportunities
    assert only.name == "case"
    assert only.candidate is not None
    assert only.candidate.outcome == "accepted"
    assert only.candidate.alternatives == ("x =  value", "x =  compute(1)", None)
    wrong = replayed(log, Scripted({"x =  ": "nonsense"}))
    assert moments(wrong) == [(None, "rejected")]


def test_a_model_that_hangs_does_not_hang_the_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    from calomel.replay import log_time
    from calomel.replay.runs import replay_log

    monkeypatch.setattr(log_time, "_PATIENCE", 0.05)
    result = replay_log(log_of(*typed("x = ", 0, 1.0)), Scripted({}, hangs=True), ReplayOptions(latency=0.05))
    assert "no answer" in result.error


def test_a_grammar_that_takes_long_to_load_takes_no_time_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    from calomel.code.languages import parser_for

    def slowly(*args: Any) -> Any:
        time.sleep(0.1)
        return parser_for(*args)

    monkeypatch.setattr("calomel.workspace.syntax.parser_for", slowly)
    result = replayed(log_of(*typed("x = ", 0, 1.0)), Scripted({"x = ": "compute(1)"}))
    assert moments(result) == [(None, "rejected")]
    assert result.opportunities[0].time == pytest.approx(1.3)


TEXT = "def area(width, height):\n    return width\n\n\nprint(area(2, 3))\n"
AT = TEXT.index("width\n\n")


def offered(entry: int, time: float, text: str, request: str) -> Offered:
    return Offered(entry, time, "area.py", (Edit(AT, AT + 5, text),), "assistant", request, True, time - 0.2)


@pytest.mark.parametrize("open_files", [0, 1])
def test_a_log_may_be_played_among_the_other_files_of_its_package(open_files: int) -> None:
    log = log_of(*typed("settings.store.put(", 0, 1.0))
    log.project = {"lib/b.py": "def save(path):\n    settings.store.put(path, encoding=None)\n"}
    model = Scripted({})
    assert replayed(log, model, ReplayOptions(latency=0.05, open_files=open_files)).text_right
    assert [draft.text for draft in model.requests[-1].drafts] == ["path, encoding=None)"]
    assert not replayed(log, alone := Scripted({})).error
    assert alone.requests[-1].drafts == ()


async def test_what_the_filter_lets_through_and_what_of_it_was_accepted() -> None:
    events: list[Event] = [
        Opened(0, 0.0, "area.py", "python", TEXT),
        Changed(1, 1.0, "area.py", (Edit(9, 14, "breadth"),), "typed"),
        Changed(2, 2.0, "area.py", (Edit(9, 16, "width"),), "typed"),
        offered(3, 3.0, "width * height", "r1"),
        offered(4, 5.0, "<|im_end|>", "r2"),
        offered(5, 7.0, "width * height", "r3"),
        Accepted(6, 8.0, "area.py", (Edit(AT, AT + 5, "width * height"),)),
        Changed(7, 8.0, "area.py", (Edit(AT, AT + 5, "width * height"),), "accept"),
    ]
    rows = await filtered_offers(ReplayLog("made", "recording", events))
    assert [(row.taken, row.reason) for row in rows][-2:] == [(False, "prompt_marker"), (True, "")]
    report = assistant_report(rows, "balanced")
    assert (report.flat["assistant_accepted"], report.flat["assistant_lost"]) == (1, 0)
    assert report.flat["assistant_offers"] == len(rows)


SAMPLES = ReplayOptions(latency=0.05, samples=True)


def scripted_model() -> Scripted:
    return Scripted({"x = ": "compute(1)"}, rivals=(("forget(2)", "seeded"), ("f(a]", "canvas"), ("c", "seeded")))


def played(log: ReplayLog, answers: Scripted, options: ReplayOptions = SAMPLES) -> list[Sample]:
    result = replay_log(log, answers, options)
    assert not result.error
    assert result.text_right
    return result.samples


def test_every_candidate_of_a_question_is_there_with_what_the_person_would_have_done() -> None:
    found = played(writing(), scripted_model())
    assert [(each.maker, each.outcome) for each in found] == [
        ("canvas", "accepted"),
        ("seeded", "rejected"),
        ("canvas", "rejected"),
        ("seeded", "too_short"),
    ]
    assert {each.question for each in found} == {"log:4:fill"}
    accepted, _, unbalanced, _ = found
    assert (accepted.saved_characters, accepted.filters, accepted.language) == (9, (), "python")
    assert "unbalanced" in unbalanced.filters
    assert accepted.signals["characters_inserted"] == 10
    assert accepted.signals["mean_log_prob"] == pytest.approx(math.log(0.9), abs=1e-6)
    assert accepted.signals["rivals"] == 3
    assert not any(each.shown for each in found)
    assert accepted.judged_ms > 0
    assert 1.3 < accepted.time < 2.0


def writing(name: str = "log") -> ReplayLog:
    """Somebody writes a call, and something else much later."""
    call = typed("compute(1)\n", 4, 4.0, entry=5)
    return log_of(*typed("x = ", 0, 1.0), *call, *typed("y", 15, 80.0, entry=20), name=name)


def test_samples_hold_no_text_and_are_taken_only_when_they_are_asked_for() -> None:
    assert all("compute" not in each.to_line() for each in played(writing(), scripted_model()))
    assert played(writing(), scripted_model(), ReplayOptions(latency=0.05)) == []
