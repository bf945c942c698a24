"""Thousands of requests, right and wrong, as the server's own OpenAPI document and the published one describe them.

None may end in a server error, hang, or be answered in another form than the document says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from tests.server.conftest import FakeFiller

from calomel.prompts.grammar import GrammarCompiler
from calomel.prompts.tokenizer import Tokenizer
from calomel.weights import nano_path

schemathesis = pytest.importorskip("schemathesis")


requests = pytest.importorskip("requests")


SAME_EACH_TIME = settings(
    derandomize=True, database=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)


# Requests of each kind to each route, of our document and of the published one.
OURS, PUBLISHED = 145, 400


LEAST_OURS, LEAST_PUBLISHED = 2800, 2200


# A request takes milliseconds; one that takes so long, in seconds, hangs.
PATIENCE = 20


# What the published document does not know, and this server says in its form.
ADDED = {400, 401, 403, 404, 405, 413, 415, 429}


pytestmark = pytest.mark.slow


openapi = pytest.importorskip("schemathesis.specs.openapi.checks")


@pytest.fixture
def filler(filler: FakeFiller) -> FakeFiller:
    """A model that can be constrained to a form: the tokens are real."""
    filler.grammars = GrammarCompiler(Tokenizer.from_file(nano_path() / "tokenizer.json"))  # type: ignore[attr-defined]
    return filler


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with requests.Session() as session:
        yield session


def ask(case: Any, live: SimpleNamespace, session: Any) -> Any:
    # The token is no part of what is varied: without it every answer is the same.
    case.headers = {name: value for name, value in (case.headers or {}).items() if name.lower() != "authorization"}
    return case.call(base_url=live.url, headers=live.headers, session=session, timeout=PATIENCE, allow_redirects=False)


def check(case: Any, response: Any, checks: list[Any]) -> None:
    kind = response.headers.get("content-type", [""])[0].partition(";")[0]
    if kind == "text/event-stream":
        events = response.content.decode().strip().split("\n\n")
        assert events[-1].startswith("data: ")
        for event in events:
            data = event.removeprefix("data: ")
            assert data == "[DONE]" or isinstance(json.loads(data), dict)
    elif kind == "application/x-ndjson":
        assert all(isinstance(json.loads(line), dict) for line in response.content.splitlines())
    else:
        case.validate_response(response, checks=checks)


def every(operation: Any, count: int, look: Callable[[Any, bool], None]) -> int:
    """Look at right and at wrong requests, so many of each; returns how many there were."""
    asked = 0

    def seen(case: Any) -> None:
        nonlocal asked
        asked += 1
        look(case, mode is schemathesis.GenerationMode.POSITIVE)

    for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
        each = given(case=operation.as_strategy(generation_mode=mode))(seen)
        # Nothing can be wrong about a request that has neither fields nor parameters.
        with suppress(Unsatisfiable):
            settings(SAME_EACH_TIME, max_examples=count)(each)()
    return asked


def operations(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(path, method) for path, methods in document["paths"].items() for method in methods]


def test_every_request_to_every_route_is_answered_as_our_document_says(live: SimpleNamespace, session: Any) -> None:
    document = live.app.openapi()
    schema = schemathesis.openapi.from_dict(document)
    checks = [openapi.response_schema_conformance, openapi.status_code_conformance]

    def look(case: Any, _: bool) -> None:  # noqa: FBT001
        response = ask(case, live, session)
        assert response.status_code < 500, case.as_curl_command()
        check(case, response, checks)

    asked = sum(every(schema[path][method.upper()], OURS, look) for path, method in operations(document))
    assert asked >= LEAST_OURS


def _senseless(body: dict[str, Any]) -> bool:
    stops, penalty = body.get("stop") or [], body.get("repetition_penalty")
    named = 0 < len(body["model"]) <= 256
    nothing = body.get("top_k") == 0 or (penalty is not None and penalty <= 0)
    return not named or nothing or len(stops) > 16 or any(not 0 < len(stop) <= 256 for stop in stops)


def test_every_request_of_the_published_document_is_answered_as_it_says(
    live: SimpleNamespace, session: Any, published: dict[str, Any]
) -> None:
    schema = schemathesis.openapi.from_dict(published)

    def look(case: Any, right: bool) -> None:  # noqa: FBT001
        known = {int(status) for status in case.operation.definition.raw["responses"] if status.isdigit()}
        response = ask(case, live, session)
        assert response.status_code in known | ADDED, case.as_curl_command()
        if response.status_code in known:
            check(case, response, [openapi.response_schema_conformance])
        else:
            assert set(response.json()["error"]) == {"message", "type", "param", "code"}
        # Beyond what is published, empty names, 0 of the best tokens, penalties of 0, and empty stops are refused.
        if right and case.path == "/v1/fim/completions" and not _senseless(case.body):
            assert response.status_code == 200, (response.text, case.body)

    asked = sum(every(schema[path][method.upper()], PUBLISHED, look) for path, method in operations(published))
    assert asked >= LEAST_PUBLISHED
