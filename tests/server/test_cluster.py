"""The application for Ray Serve, with a played Ray: what its settings may say, and what each replica runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.server import _upstreams as played
from tests.server._upstreams import Play, served
from tests.server.conftest import TOKEN, opened

from calomel.server.errors import StartError
from calomel.weights.folders import ModelNameError

App = Callable[[Mapping[str, str]], Any]


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch) -> App:
    """Builds what `serve run` would run in each replica."""

    def deployment(build: Any, **_: Any) -> Any:
        return SimpleNamespace(bind=lambda: build)

    def ingress(build: Any) -> Any:
        return lambda: build

    modules: dict[str, dict[str, Any]] = {
        "ray": {"serve": SimpleNamespace(deployment=deployment, ingress=ingress, Application=object)},
        "ray.serve.config": {"RequestRouterConfig": dict},
        "ray.serve.experimental.consistent_hash_router": {"ConsistentHashRouter": object},
    }
    for name, fields in modules.items():
        module = ModuleType(name)
        vars(module).update(fields)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "calomel.server.cluster", raising=False)
    cluster: App = import_module("calomel.server.cluster").app
    monkeypatch.delitem(sys.modules, "calomel.server.cluster")
    return cluster


def test_a_replica_asks_the_upstream(application: App) -> None:
    with served(played.ollama(Play())) as url:
        build = application({"upstream": url, "token": TOKEN})
        with opened(build()) as client:
            answer = client.post("/v1/fim/completions", json={"model": "m", "prompt": "x = ", "suffix": "\n"}).json()

    assert answer["choices"][0]["text"] == "n * 2"


WRONG: dict[str, tuple[dict[str, str], type[Exception], str]] = {
    "a token that nobody learns": ({"fresh_token": "true"}, StartError, "nobody would learn the fresh-token"),
    "where Ray listens": ({"no_auth": "true", "port": "8000"}, StartError, "port has no effect here"),
    "a promise that Ray breaks": ({"no_auth": "true", "offline": "true"}, StartError, "offline does not hold"),
    "a model that is not there": ({"no_auth": "true", "model": "nothing"}, ModelNameError, "nothing"),
    "a key that is not there": (
        {"no_auth": "true", "upstream": "http://127.0.0.1:9", "upstream_key_file": "/nowhere/key"},
        StartError,
        "the key file /nowhere/key does not exist",
    ),
}


@pytest.mark.parametrize(("given", "error", "sentence"), WRONG.values(), ids=WRONG)
def test_what_cannot_work_is_told_before_any_replica_starts(
    application: App, given: dict[str, str], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        application(given)


def test_a_model_is_found_by_its_name(application: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "calomel" / "models" / "mine"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"max_position_embeddings": 4096}')
    app = application({"model": "mine", "no_auth": "true"})()

    assert app.state.app_state.settings.model == folder
