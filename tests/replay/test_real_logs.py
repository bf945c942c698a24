"""The replay over the public logs, with a model that is always silent: the texts must be right to the end."""

from __future__ import annotations

import pytest
from tests.replay.recordings import shared
from tests.replay.scripted import Scripted, player_of

from calomel.replay.events import Changed, Opened
from calomel.replay.logs import read_log
from calomel.replay.opportunity import ReplayOptions


@pytest.mark.slow
def test_the_recorded_session_ends_with_its_own_texts() -> None:
    log = read_log(shared("recordings/vscode-session-a.recording.w.json"))
    model = Scripted({})
    _, result = player_of(log, model, ReplayOptions(latency=0.2))
    assert result.text_right
    assert (result.checks.content_ids_right, result.checks.content_ids_wrong, result.checks.accepts) == (27, 0, 56)
    assert (result.real_offers, result.real_accepts) == (353, 46)
    assert len(model.requests) > 500
    # What the suggester saw is a piece of the text that the document had just then.
    opened = {event.document: event.text for event in log.events if isinstance(event, Opened)}
    first = model.requests[0].parts
    assert first.path in opened


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rustcode", "sveltecomponent"])
def test_the_beginning_of_a_trace_has_its_own_text(name: str) -> None:
    log = read_log(shared(f"keystrokes/{name}.json.gz"))
    assert log.checks.end_content_right
    log.events = log.events[:3000]
    player, result = player_of(log, Scripted({}), ReplayOptions(latency=0.2))
    assert result.text_right
    typed = sum(isinstance(event, Changed) for event in log.events)
    assert typed >= 2999
    assert player.editor.texts.keys() == {event.document for event in log.events}
