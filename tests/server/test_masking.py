"""Looking for secrets in what clients send: in a thread of its own, since the event loop answers all the others."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.test_edit import ask
from tests.server.test_edit import prompt as edit_prompt

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
