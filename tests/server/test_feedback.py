from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from calomel.suggest.outcome_history import read_outcomes
from calomel.suggest.outcome_log import outcome_log_path

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
    return [(each.outcome, each.accepted_length) for each in read_outcomes(outcome_log_path()).records]


def test_an_acceptance_is_written_down_without_a_token(client: TestClient, given: str) -> None:
    answer = tell(client, given)

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    shown, accepted = read_outcomes(outcome_log_path()).records
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


def test_no_text_of_the_users_is_written(client: TestClient, given: str) -> None:
    tell(client, given)

    assert b"return" not in outcome_log_path().read_bytes()


def test_the_last_decision_counts_and_the_same_one_is_written_once(client: TestClient, given: str) -> None:
    for action in ("ignore", "ignore", "accept", "accept"):
        tell(client, given, action)

    assert written() == [("shown", 0), ("ignored", 0), ("accepted", 8)]


def test_whoever_knows_an_id_cannot_fill_the_disk_with_it(client: TestClient, given: str) -> None:
    for _ in range(50):
        tell(client, given, "accept")
        tell(client, given, "reject")

    assert len(written()) == 9


def test_an_unknown_id_gets_the_same_answer_and_writes_nothing(client: TestClient, given: str) -> None:
    unknown = tell(client, "cmpl-" + "0" * 32)
    known = tell(client, given)

    assert (unknown.status_code, unknown.content) == (known.status_code, known.content)
    assert [each.id for each in read_outcomes(outcome_log_path()).records] == [given, given]


def test_a_flood_of_unknown_ids_leaves_no_trace(client: TestClient) -> None:
    for number in range(200):
        assert tell(client, f"cmpl-{number}").status_code == 200
    assert not outcome_log_path().exists()


def test_the_log_can_be_turned_off(open_client: Callable[..., TestClient]) -> None:
    client = open_client(outcome_log=False)
    given = client.post(FIM, json={"model": "m", "prompt": "x"}).json()["id"]

    assert tell(client, given).status_code == 200
    assert not outcome_log_path().exists()


def test_a_log_that_cannot_be_written_is_no_error_of_the_client(client: TestClient, given: str) -> None:
    path = outcome_log_path()
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    path.parent.write_text("not a folder")

    assert tell(client, given).status_code == 200


def test_an_answer_without_an_id_can_be_told_of(client: TestClient) -> None:
    assert tell(client, "").json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"request_id": None}, "request_id"),
        ({"request_id": "x" * 257}, "request_id"),
        ({"user_action": "love"}, "user_action"),
        ({"user_action": None}, "user_action"),
        ({"provider_name": 3}, "provider_name"),
        ({"user_action": "partial"}, "accepted_length"),
        ({"user_action": "partial", "accepted_length": 0}, "accepted_length"),
        ({"user_action": "partial", "accepted_length": 2**31}, "accepted_length"),
        ({"user_action": "partial", "accepted_length": True}, "accepted_length"),
    ],
)
def test_malformed_bodies_are_refused_by_name(client: TestClient, fields: dict[str, Any], param: str) -> None:
    answer = client.post("/feedback", json={"request_id": "a", "user_action": "accept", **fields})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"\xff", b'{"request_id": "\\ud800"}'])
def test_what_is_no_json_object_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/feedback", content=body, headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_long_body_is_not_read(client: TestClient) -> None:
    answer = tell(client, "a", provider="x" * 70_000)

    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


def test_a_simple_content_type_is_refused(client: TestClient) -> None:
    answer = client.post("/feedback", content=b"{}", headers={"content-type": "text/plain"})

    assert answer.status_code == 415


def test_feedback_on_an_edit_knows_who_proposed_it(client: TestClient, tmp_path: Path) -> None:
    content = (
        "<|current_file_content|>\ncurrent_file_path: a.py\ndef area(width):\n"
        "<|code_to_edit|>\n    return w<|cursor|>\n<|/code_to_edit|>\n<|/current_file_content|>\n"
        "<|edit_diff_history|>\n--- a.py\n+++ a.py\n@@ -1,1 +1,1 @@\n-def area(w):\n+def area(width):\n"
        "<|/edit_diff_history|>\n"
    )
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    tell(client, client.post("/v1/edit/completions", json=body).json()["id"], "reject")

    _, rejected = read_outcomes(outcome_log_path()).records
    assert (rejected.kind, rejected.language, rejected.outcome) == ("edit", "python", "rejected")
    assert rejected.maker
    assert outcome_log_path().is_relative_to(tmp_path)
