from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import SecretStr, ValidationError
from starlette.testclient import TestClient
from tests.server.conftest import TOKEN, FakeFiller, until

from calomel.server.app import create_app
from calomel.server.settings import ServerSettings
from calomel.server.tokens import Tokens
from calomel.suggest.replicas.errors import ReplicaLostError
from calomel.suggest.replicas.group import Losses
from calomel.suggest.replicas.line import ReplicaLook

FIM = "/v1/fim/completions"
BODY = {"model": "nano", "prompt": "a"}


class SessionFiller(FakeFiller):
    """Remembers in whose session it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: list[str] = []
        look = ReplicaLook("r1", 12, "here", 1, 2, 32, 64, 5)
        watch = SimpleNamespace(wanted=2, up=(look,), restarts=1)
        self.engine = SimpleNamespace(
            watch=watch, losses=Losses(replicas=1, retried=3, lost=0), occupancy=(1, 2), config=None
        )

    def in_session(self, session: str, client: str) -> SessionFiller:
        assert session.startswith(client)
        self.sessions.append(session)
        return self


@pytest.fixture
def filler() -> SessionFiller:
    return SessionFiller()


def test_what_a_client_calls_its_session_is_one(client: TestClient, filler: SessionFiller) -> None:
    for name in ("w1", "w1", "w2"):
        assert client.post(FIM, json=BODY, headers={"x-session-id": name}).status_code == 200
    first, second, third = filler.sessions
    assert first == second != third


def test_without_a_name_a_connection_is_a_session(client: TestClient, filler: SessionFiller) -> None:
    client.post(FIM, json=BODY)
    client.post(FIM, json=BODY, headers={"x-session-id": "x" * 1000})
    assert filler.sessions[0] == filler.sessions[1]
    assert "50000" in filler.sessions[0]  # the test client's port


def test_a_person_with_a_token_of_his_own_is_a_session_and_no_other_can_name_it(filler: SessionFiller) -> None:
    tokens = Tokens({"ann": "a" * 20, "bob": "b" * 20})
    factory: Callable[[], Any] = lambda: filler  # noqa: E731
    app = create_app(ServerSettings(token=SecretStr(TOKEN)), factory, tokens)
    with TestClient(app, base_url="http://127.0.0.1:8017") as client:
        until(lambda: app.state.door.loader.state == "ready")
        for letter, name in (("a", {}), ("b", {}), ("a", {"x-session-id": "w"}), ("b", {"x-session-id": "w"})):
            headers = {"authorization": f"Bearer {letter * 20}", **name}
            assert client.post(FIM, json=BODY, headers=headers).status_code == 200
    assert len(set(filler.sessions)) == 4


def test_a_lost_replica_is_told_as_an_answer_to_come_back_to(client: TestClient, filler: SessionFiller) -> None:
    filler.error = ReplicaLostError("a replica of the model was lost while it answered; ask again")
    answer = client.post(FIM, json=BODY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "replica_lost")
    assert "retry-after" in answer.headers


def test_the_status_and_the_metrics_tell_which_replicas_are_up(
    make_app: Callable[..., FastAPI], open_client: Callable[..., TestClient]
) -> None:
    client = open_client(replicas=2)
    found = client.get("/calomel/v1/status").json()
    assert found["replicas"] == {
        "wanted": 2,
        "up": [{"id": "r1", "pid": 12, "node": "here", "running": 1, "waiting": 2, "answered": 5}],
        "restarts": 1,
        "retried": 3,
        "lost": 0,
        "doubled": 0,
    }
    assert (found["cache"]["tokens"], found["cache"]["capacity"]) == (32, 64)
    metrics = client.get("/metrics").text
    for line in (
        'calomel_replicas{state="wanted"} 2.0',
        'calomel_replicas{state="up"} 1.0',
        "calomel_replica_restarts 1.0",
        'calomel_replica_requests{fate="retried"} 3.0',
    ):
        assert line in metrics


def test_without_replicas_nothing_is_said_of_them(client: TestClient) -> None:
    assert client.get("/calomel/v1/status").json()["replicas"] is None
    assert "calomel_replicas" not in client.get("/metrics").text


def test_a_number_of_replicas_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValidationError, match="replicas"):
        ServerSettings(token=SecretStr(TOKEN), replicas=0)
