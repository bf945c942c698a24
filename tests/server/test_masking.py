"""Looking for secrets in what clients send: in a thread of its own, since the event loop answers all the others."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.conftest import FakeFiller
from tests.server.test_edit import ask
from tests.server.test_edit import prompt as edit_prompt

from calomel.server.answers import nearest

LONG = "x = 1  # a line\n" * 200
ASKED: dict[str, dict[str, Any]] = {
    "/v1/fim/completions": {"model": "m", "prompt": LONG, "suffix": "\n"},
    "/v1/completions": {"model": "m", "prompt": LONG, "suffix": "\n"},
    "/infill": {"input_prefix": LONG, "input_suffix": "\n", "input_extra": [{"text": LONG, "filename": "a.py"}]},
    "/v1/edit/completions": ask(edit_prompt().replace("print(area(1, 2))\n", LONG)),
}


@pytest.mark.parametrize("url", ASKED)
def test_no_route_looks_for_secrets_on_the_event_loop(
    client: TestClient, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = client.app.state.door.edits.secrets  # type: ignore[attr-defined]
    mask, on_loop = rules.mask, list[bool]()

    def watched(text: str) -> str:
        if len(text) >= len(LONG):
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                on_loop.append(False)
            else:
                on_loop.append(True)
        return str(mask(text))

    monkeypatch.setattr(rules, "mask", watched)
    assert client.post(url, content=json.dumps(ASKED[url]), headers={"content-type": "application/json"}).is_success
    assert on_loop
    assert not any(on_loop)


MEGABYTES = ("xo" + "xb-") * 600_000


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("/v1/fim/completions", {"model": "m", "prompt": MEGABYTES, "suffix": "\n" + MEGABYTES[:500_000]}),
        ("/v1/completions", {"model": "m", "prompt": MEGABYTES, "suffix": "\n" + MEGABYTES[:500_000]}),
        ("/infill", {"input_prefix": MEGABYTES, "input_suffix": "\n" + MEGABYTES[:500_000]}),
    ],
)
def test_no_more_of_megabytes_is_looked_at_than_a_model_can_read(
    client: TestClient, filler: FakeFiller, url: str, body: dict[str, Any]
) -> None:
    assert client.post(url, json=body).is_success
    request = filler.requests[-1]
    assert MEGABYTES.endswith(request.parts.prefix)
    assert request.max_context * 16 <= len(request.parts.prefix) < request.max_context * 16 + 65_536
    assert len(request.parts.suffix) < request.max_context * 16 + 65_536


def test_what_is_left_out_stays_the_same_while_somebody_types() -> None:
    text, suffix = "x = 1\n" * 50_000, "\n" + "y = 2\n" * 50_000
    cuts = {len(text[:end]) - len(nearest(text[:end], suffix, 2048)[0]) for end in range(200_000, 210_000, 100)}
    assert len(cuts) == 1
    assert nearest("a", "b", 2048) == ("a", "b")
    assert len(nearest(text, suffix, 2048)[1]) % 384 == len(suffix) % 384
