"""A client for Node of other people's, unchanged, against the running server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


def test_continues_adapter_fills_edits_and_applies(node_client: Callable[..., Any]) -> None:
    said = node_client("continue.mjs", "@continuedev/openai-adapters")
    assert isinstance(said["fill"], str)
    assert isinstance(said["at_the_end"], str)
    assert said["edit"].startswith("```\n")
    assert said["edit"].endswith("\n```")
    assert said["edit_streamed"] == said["edit"]
    assert said["applied"] == "def one():\n    return 1\n\n\ndef two():\n    return 22\n"
