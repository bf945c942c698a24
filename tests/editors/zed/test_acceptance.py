"""Zed never says what was accepted; its next prompt shows it."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.editors.zed.answers import applied
from tests.editors.zed.events import Event
from tests.editors.zed.prompts import STOP, ask

from calomel.suggest.outcome_history import read_outcomes
from calomel.suggest.outcome_log import outcome_log_path

PATH = "work/shape.py"
OLD = "def area(w, height):\n    return w * height\n\n\nprint(area(1, 2))\n"
NEW = OLD.replace("area(w,", "area(width,")


def post(client: TestClient, text: str, *events: Event) -> Any:
    asked = ask(PATH, text, text.index("return w") + 8, events)
    assert asked is not None
    question = {"model": "zeta2.1", "prompt": asked.prompt, "max_tokens": 2048, "stop": list(STOP)}
    body = client.post("/v1/completions", json=question).json()
    return body["id"], applied(asked, body["choices"][0]["text"])


def written() -> list[tuple[str, str]]:
    path = outcome_log_path()
    return [(each.id, each.outcome) for each in read_outcomes(path).records] if path.exists() else []


@pytest.mark.parametrize("typed", ["", "i"])
def test_an_accepted_prediction_is_logged_once_when_the_next_prompt_shows_it(client: TestClient, typed: str) -> None:
    rename = Event(PATH, OLD, NEW)
    given, made = post(client, NEW, rename)
    assert "return width * height" in made
    assert written() == []

    before = NEW.replace("return w ", f"return w{typed} ")
    events = [rename, *([Event(PATH, NEW, before)] if typed else []), Event(PATH, before, made, predicted=True)]
    for _ in range(2):
        post(client, made, *events)

    assert written() == [(given, "shown"), (given, "accepted")]


def test_a_prediction_that_the_user_did_not_take_stays_unknown(client: TestClient) -> None:
    rename = Event(PATH, OLD, NEW)
    post(client, NEW, rename)
    other = NEW.replace("return w *", "return 2 *")
    asked = ask(PATH, other, other.index("return 2"), [rename, Event(PATH, NEW, other)])
    assert asked is not None
    client.post("/v1/completions", json={"prompt": asked.prompt, "stop": list(STOP)})

    assert written() == []
