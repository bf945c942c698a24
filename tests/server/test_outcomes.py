"""What became of answers: feedback, and a log that outlives a kill."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import Opener
from tests.server.program import program
from tests.suggest.made_outcome import bad_lines, read

from calomel.suggest.outcome_log import outcome_log_path
from calomel.weights import nano_path

FIM = "/v1/fim/completions"


@pytest.fixture
def given(client: TestClient) -> str:
    """The id of an answer, `return n`."""
    answer: str = client.post(FIM, json={"model": "m", "prompt": "def f(n):\n    "}).json()["id"]
    return answer


def tell(client: TestClient, request_id: str, action: str = "accept", **fields: Any) -> Any:
    body = {"request_id": request_id, "provider_name": "zed", "user_action": action, "provider_version": "1", **fields}
    return client.post("/feedback", json=body, headers={"authorization": ""})


def written() -> list[tuple[str, int]]:
    return [(each.outcome, each.accepted_length) for each in read(outcome_log_path())]


def test_an_acceptance_is_written_down_without_a_token(client: TestClient, given: str) -> None:
    answer = tell(client, given)

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    shown, accepted = read(outcome_log_path())
    assert (shown.outcome, shown.id, shown.kind, shown.trigger) == ("shown", given, "fill", "http")
    assert (accepted.outcome, accepted.id, accepted.unit) == ("accepted", given, "all")
    assert accepted.length == accepted.accepted_length == len("return n")
    assert (accepted.probability, accepted.session) == (0.9, shown.session)


@pytest.mark.parametrize(
    ("action", "fields", "expected"),
    [
        ("reject", {}, ("rejected", 0)),
        ("ignore", {}, ("ignored", 0)),
        ("partial", {"accepted_length": 6}, ("partly_accepted", 6)),
        ("partial", {"accepted_length": 999_999}, ("partly_accepted", 8)),
    ],
)
def test_other_decisions_are_written_down(
    client: TestClient, given: str, action: str, fields: dict[str, Any], expected: tuple[str, int]
) -> None:
    assert tell(client, given, action, **fields).status_code == 200
    assert written() == [("shown", 0), expected]


def test_the_last_decision_counts_and_the_same_one_is_written_once(client: TestClient, given: str) -> None:
    for action in ("ignore", "ignore", "accept", "accept"):
        tell(client, given, action)

    assert written() == [("shown", 0), ("ignored", 0), ("accepted", 8)]
    # No text of the user's.
    assert b"return" not in outcome_log_path().read_bytes()


def test_whoever_knows_an_id_cannot_fill_the_disk_with_it(client: TestClient, given: str) -> None:
    for _ in range(50):
        tell(client, given, "accept")
        tell(client, given, "reject")

    assert len(written()) == 9


def test_an_unknown_id_gets_the_same_answer_and_writes_nothing(client: TestClient, given: str) -> None:
    unknown, nameless = tell(client, "cmpl-" + "0" * 32), tell(client, "")
    known = tell(client, given)

    assert unknown.content == nameless.content == known.content == b'{"status":"ok"}'
    assert [each.id for each in read(outcome_log_path())] == [given, given]


def test_the_log_can_be_turned_off(open_client: Opener) -> None:
    client = open_client(outcome_log=False)
    given = client.post(FIM, json={"model": "m", "prompt": "x"}).json()["id"]

    assert tell(client, given).status_code == 200
    assert not outcome_log_path().exists()


def test_a_log_that_cannot_be_written_is_no_error_of_the_client(client: TestClient, given: str) -> None:
    path = outcome_log_path()
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    path.parent.write_text("not a folder")

    assert tell(client, given).status_code == 200


def test_a_long_body_is_not_read(client: TestClient) -> None:
    answer = tell(client, "a", provider="x" * 70_000)

    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


def test_feedback_on_an_edit_knows_who_proposed_it(client: TestClient, tmp_path: Path) -> None:
    content = (
        "<|current_file_content|>\ncurrent_file_path: a.py\ndef area(width):\n"
        "<|code_to_edit|>\n    return w<|cursor|>\n<|/code_to_edit|>\n<|/current_file_content|>\n"
        "<|edit_diff_history|>\n--- a.py\n+++ a.py\n@@ -1,1 +1,1 @@\n-def area(w):\n+def area(width):\n"
        "<|/edit_diff_history|>\n"
    )
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    tell(client, client.post("/v1/edit/completions", json=body).json()["id"], "reject")

    _, rejected = read(outcome_log_path())
    assert (rejected.kind, rejected.language, rejected.outcome) == ("edit", "python", "rejected")
    assert rejected.maker
    assert outcome_log_path().is_relative_to(tmp_path)


@pytest.mark.e2e
@pytest.mark.skipif(not (nano_path() / "model.safetensors").exists(), reason="no shipped weights")
def test_feedback_that_was_taken_before_a_kill_is_in_the_log(tmp_path: Path) -> None:
    taken = []
    for _ in range(2):
        with program(tmp_path) as (process, client):
            for _ in range(5):
                ask: dict[str, Any] = {"model": "m", "prompt": "def add(a, b):\n    return ", "max_tokens": 4}
                given = client.post("/v1/fim/completions", json=ask).json()["id"]
                told = {"request_id": given, "user_action": "accept"}
                assert client.post("/feedback", json=told).json() == {"status": "ok"}
                taken.append(given)
            process.send_signal(signal.SIGKILL)
            process.wait(30)

    log = tmp_path / "xdg_state_home" / "calomel" / "outcomes.jsonl"

    assert bad_lines(log) == 0
    assert [each.id for each in read(log) if each.outcome == "accepted"] == taken
