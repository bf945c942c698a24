"""Clients of other people's, unchanged, against the running server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


FENCED = "```\n"


MERGED = "def one():\n    return 1\n\n\ndef two():\n    return 22"


@pytest.fixture(scope="module")
def inception(python_client: Callable[..., Any]) -> Any:
    return python_client("inception_sdk.py", "inceptionai")


def test_the_official_sdk_accepts_every_answer_strictly(inception: Any) -> None:
    assert inception["streamed"] == inception["fill"]
    assert inception["streamed_usage"] == inception["fill_usage"] > 0
    assert inception["edit_object"] == "edit.completion"
    assert inception["edit"].startswith(FENCED)
    assert inception["edit"].endswith("\n```")
    assert inception["applied"] == MERGED


def test_the_official_sdk_finds_the_model_under_every_family(inception: Any) -> None:
    assert inception["models"] == inception["fim_models"] == inception["edit_models"] != []


def test_the_official_sdk_reads_refusals_as_its_own_errors(inception: Any) -> None:
    assert inception["wrong_token"] == "invalid_api_key"
    assert inception["too_many"] == "invalid_parameter"
    assert inception["chat"] == "model_not_found"


def test_openais_sdk_fills_completes_and_reads_refusals(python_client: Callable[..., Any]) -> None:
    said = python_client("openai_sdk.py", "openai")
    assert said["streamed"] == said["fill"]
    assert said["streamed_usage"] > 0
    assert said["edit"].startswith(FENCED)
    assert said["models"] != []
    assert isinstance(said["completed"], str)
    assert (said["chat"], said["wrong"]) == ("model_not_found", "temperature")


def test_litellm_fills_and_reads_refusals(python_client: Callable[..., Any]) -> None:
    # Otherwise it asks a server elsewhere for a list of prices.
    said = python_client("through_litellm.py", "litellm", LITELLM_LOCAL_MODEL_COST_MAP="True")
    assert said["streamed"] == said["fill"]
    assert (said["chat"], said["wrong_token"]) == (404, 401)


def test_continues_adapter_fills_edits_and_applies(node_client: Callable[..., Any]) -> None:
    said = node_client("continue.mjs", "@continuedev/openai-adapters")
    assert isinstance(said["fill"], str)
    assert isinstance(said["at_the_end"], str)
    assert said["edit"].startswith("```\n")
    assert said["edit"].endswith("\n```")
    assert said["edit_streamed"] == said["edit"]
    assert said["applied"] == "def one():\n    return 1\n\n\ndef two():\n    return 22\n"
