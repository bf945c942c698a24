from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient


@pytest.mark.parametrize("path", ["/v1/models", "/v1/fim/completions/models", "/v1/edit/completions/models"])
def test_the_checkpoint_is_listed_from_its_own_configuration(
    open_client: Callable[..., TestClient], tmp_path: Path, path: str
) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 4096}))

    [model] = open_client(model=folder).get(path).json()["data"]

    assert (model["id"], model["context_length"], model["max_output_length"]) == ("my-model", 4096, 4096)
    assert model["created"] == int((folder / "config.json").stat().st_mtime)
    assert model["pricing"] == {
        "prompt": "0",
        "completion": "0",
        "input_cache_reads": "0",
        "input_cache_writes": "0",
    }
    assert {"fim.completions", "edit.completions"} <= set(model["supported_endpoints"])
    assert "presence_penalty" in model["supported_sampling_parameters"]


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"max_position_embeddings": "many"}'])
def test_a_checkpoint_with_an_unreadable_configuration_is_still_listed(
    open_client: Callable[..., TestClient], tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)

    [model] = open_client(model=tmp_path).get("/v1/models").json()["data"]

    assert (model["id"], model["context_length"]) == (tmp_path.name, 2048)
