"""How the server is: /health, the status page and its numbers, the list of models, the log."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import Opener, until
from tests.server.program import program
from tests.suggest.made_outcome import bad_lines, read

from calomel.infer.completer import Occupancy
from calomel.server.logs import log_to, say
from calomel.server.metrics import Metrics, Spent
from calomel.server.middleware import log_failure
from calomel.suggest.outcome_log import outcome_log_path
from calomel.weights import nano_path

ASK = {"model": "m", "prompt": "SECRET = "}


HOSTILE = "ok\n2026-01-01 INFO forged \x1b[31mred\x1b[0m\r\x00\u2028 é"


_log = logging.getLogger("calomel.server")


FIM, STATUS = "/v1/fim/completions", "/calomel/v1/status"


def test_an_answer_appears_among_the_recent_ones_and_in_the_sums_in_numbers_alone(client: TestClient) -> None:
    asked = {"model": "SECRETMODEL", "prompt": "SECRET"}
    _, made = (client.post(FIM, json=asked, headers={"x-secret": "SECRETHEAD"}).json() for _ in range(2))
    answer = client.get(STATUS)

    found = answer.json()
    assert (found["cache"]["hit_share"], len(found["recent"]), found["queue"]["running"]) == (32 / 48, 2, 0)
    assert found["uptime_seconds"] > 0
    assert found["resident_bytes"] > 1_000_000
    entry = found["recent"][0]
    assert entry.pop("at") == pytest.approx(made["created"], abs=60)
    assert entry == {
        "id": made["id"],
        "route": "fim",
        "prompt_tokens": 24,
        "cached_tokens": 16,
        "completion_tokens": 14,
        "steps": 3,
        "milliseconds": 20.0,
        "finish": "stop",
    }
    assert "SECRET" not in answer.text
    assert "return n" not in answer.text


@pytest.fixture
def loading(open_client: Opener, filler: Any) -> Iterator[TestClient]:
    """A client of a server whose model is not there before the test ends."""
    loaded = Event()

    def load() -> Any:
        loaded.wait(10)
        return filler

    yield open_client(ready=False, factory=load)
    loaded.set()


def test_while_the_model_loads_the_door_answers_and_says_so(loading: TestClient) -> None:
    health, fim = loading.get("/health"), loading.post(FIM, json=ASK)
    model = loading.get(STATUS).json()["model"]

    assert (health.status_code, health.headers["retry-after"]) == (503, "2")
    assert health.json()["status"] == "loading"
    assert (fim.status_code, fim.headers["retry-after"]) == (503, "2")
    assert (
        fim.json()
        == {"error": health.json()["error"]}
        == {
            "error": {
                "message": "The model is still loading. Please try again shortly.",
                "type": "server_error",
                "param": None,
                "code": "model_loading",
            }
        }
    )
    assert loading.get("/v1/models").status_code == 200
    assert (model["state"], model["id"], model["device"]) == ("loading", None, "cpu")


def test_a_model_that_could_not_be_loaded_is_told_without_its_reason(
    open_client: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    def load() -> Any:
        raise FileNotFoundError("/home/me/secret-model")

    client = open_client(ready=False, factory=load)
    # The reason is logged once the state has changed.
    until(lambda: "/home/me/secret-model" in caplog.text)
    health = client.get("/health")

    assert (health.status_code, health.json()["status"]) == (503, "failed")
    assert health.json()["error"]["code"] == "model_failed"
    assert "secret-model" not in health.text
    assert client.post("/v1/fim/completions", json={"model": "m", "prompt": "x"}).status_code == 503


def test_queue_and_cache_of_the_engine_are_read(client: TestClient, filler: Any) -> None:
    filler.occupancy = lambda: Occupancy(8, 3, 960, 1600)

    found = client.get(STATUS).json()
    assert (found["queue"]["engine_running"], found["queue"]["engine_waiting"], found["queue"]["limit"]) == (8, 3, 128)
    assert (found["cache"]["tokens"], found["cache"]["capacity"]) == (960, 1600)


def test_the_pace_is_that_of_the_last_minute() -> None:
    now = 1000.0
    recent = Metrics(lambda: now)
    recent.answered("old", "fim", Spent(completion_tokens=99, seconds=9.0))
    now += 100
    for number in range(20):
        now += 1
        recent.answered(str(number), "fim", Spent(completion_tokens=3, seconds=number / 1000))
    now += 1

    pace = recent.pace()
    assert (pace.seconds, pace.answers_per_second, pace.tokens_per_second) == (60.0, 20 / 60, 1.0)
    assert (pace.p50_ms, pace.p95_ms) == (10.0, 19.0)
    assert pace.by_second == [0] * 40 + [1] * 20


def policy(client: TestClient) -> dict[str, str]:
    parts = client.get("/").headers["content-security-policy"].split("; ")
    return {name: value for name, _, value in (part.partition(" ") for part in parts)}


def test_the_page_is_one_file_that_loads_nothing_from_elsewhere_and_never_makes_markup_of_text(
    client: TestClient,
) -> None:
    text = client.get("/").text

    assert text.startswith("<!doctype html>")
    # The name of a drawing's elements is no address that anybody fetches.
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"\bsrc=|@import|url\(|<link rel=\"stylesheet\"", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)


def test_the_policy_lets_the_pages_own_script_and_style_run_and_nothing_else(client: TestClient) -> None:
    text = client.get("/").text
    (script,), (style,) = (re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("script", "style"))

    def digest(block: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}'"

    found, headers = policy(client), client.get("/").headers
    assert (headers["content-type"], headers["x-content-type-options"]) == ("text/html; charset=utf-8", "nosniff")
    assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "no-store")
    assert found["default-src"] == found["frame-ancestors"] == found["base-uri"] == found["form-action"] == "'none'"
    assert (found["script-src"], found["style-src"]) == (digest(script), digest(style))
    assert found["connect-src"] == "'self'"
    assert "unsafe" not in str(found)
    assert not re.search(r"\son\w+=|\sstyle=|javascript:", text)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/fim/completions/models", "/v1/edit/completions/models"])
def test_the_checkpoint_is_listed_from_its_own_configuration(open_client: Opener, tmp_path: Path, path: str) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 4096}))

    [model] = open_client(model=folder).get(path).json()["data"]

    assert (model["id"], model["context_length"], model["max_output_length"]) == ("my-model", 4096, 4096)
    assert model["created"] == int((folder / "config.json").stat().st_mtime)
    assert model["pricing"] == {"prompt": "0", "completion": "0", "input_cache_reads": "0", "input_cache_writes": "0"}
    assert {"fim.completions", "edit.completions"} <= set(model["supported_endpoints"])
    assert "presence_penalty" in model["supported_sampling_parameters"]


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"max_position_embeddings": "many"}'])
def test_a_checkpoint_with_an_unreadable_configuration_is_still_listed(
    open_client: Opener, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)

    [model] = open_client(model=tmp_path).get("/v1/models").json()["data"]

    assert (model["id"], model["context_length"]) == (tmp_path.name, 2048)


@pytest.fixture
def _restored() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("calomel", "uvicorn", "uvicorn.error")]
    before = [(logger, logger.handlers, logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.mark.usefixtures("_restored")
def test_nobody_can_forge_a_line_or_paint_a_terminal() -> None:
    out = io.StringIO()
    log_to(out, "info")
    _log.info("path %s", HOSTILE)

    [line] = out.getvalue().splitlines()
    assert line.endswith(r"INFO calomel.server: path ok\n2026-01-01 INFO forged \x1b[31mred\x1b[0m\r\x00\u2028 é")


@pytest.mark.usefixtures("_restored")
def test_of_an_error_the_log_gets_type_and_places_and_no_message() -> None:
    out = io.StringIO()
    log_to(out, "debug")
    try:
        raise ValueError("def secret_of_the_user():")  # noqa: TRY301
    except ValueError as error:
        log_failure(error)
        _log.debug("at the place of the error", exc_info=error)

    assert "secret_of_the_user" not in out.getvalue()
    assert "unexpected ValueError" in out.getvalue()
    assert "test_status.py" in out.getvalue()


@pytest.mark.usefixtures("_restored")
def test_a_full_disk_stops_nothing() -> None:
    class Full(io.StringIO):
        def write(self, _: str, /) -> int:
            raise OSError(28, "No space left on device")

    log_to(Full(), "info")
    _log.info("lost")
    say(Full(), "lost as well")


OUTCOMES_FIM = "/v1/fim/completions"


@pytest.fixture
def given(client: TestClient) -> str:
    """The id of an answer, `return n`."""
    answer: str = client.post(OUTCOMES_FIM, json={"model": "m", "prompt": "def f(n):\n    "}).json()["id"]
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
    given = client.post(OUTCOMES_FIM, json={"model": "m", "prompt": "x"}).json()["id"]

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
