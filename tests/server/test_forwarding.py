"""The door in front of replicas, which are applications of the same process here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from threading import Event
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from starlette.types import Message, Scope
from tests.server.conftest import TOKEN, FakeFiller, listening, opened, until

from calomel.server.app import create_app
from calomel.server.errors import ReplicaLostError
from calomel.server.forwarding import MAX_SENDINGS, Forwarding, answers
from calomel.server.settings import ServerSettings
from calomel.server.tokens import Tokens

FIM = "/v1/fim/completions"


BODY = {"model": "nano", "prompt": "a"}


TOKENS = Tokens({"": TOKEN, "ann": "a" * 20, "bob": "b" * 20})


class Here:
    """Two replicas; some may be lost before they say the message of a number."""

    def __init__(self, filler: FakeFiller) -> None:
        settings = ServerSettings(token=SecretStr(TOKEN))
        self.wanted, self.ready = 2, 2
        self.asked: list[str] = []
        self.lost: list[int] = []
        model: Any = filler
        self.apps = {name: create_app(settings, lambda: model, tokens=TOKENS) for name in ("r1", "r2")}
        for app in self.apps.values():
            app.state.door.loader.start()
        until(lambda: all(app.state.door.loader.state == "ready" for app in self.apps.values()))

    async def ask(self, session: str, scope: Scope, body: bytes) -> AsyncGenerator[Sequence[Message]]:
        self.asked.append(session)
        left = self.lost.pop() if self.lost else 99
        async with aclosing(answers(self.apps["r1"], "r1", scope, body)) as found:
            async for messages in found:
                for message in messages:
                    if not left:
                        raise ReplicaLostError
                    left -= 1
                    yield [message]

    async def ask_all(self, scope: Scope, body: bytes) -> Mapping[str, Sequence[Message]]:
        return {
            name: [message async for messages in answers(app, name, scope, body) for message in messages]
            for name, app in self.apps.items()
        }

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def replicas(filler: FakeFiller) -> Here:
    return Here(filler)


@pytest.fixture
def door(replicas: Here) -> FastAPI:
    model: Any = replicas
    settings = ServerSettings(token=SecretStr(TOKEN), max_requests=8, client_share=0.25)
    return create_app(settings, lambda: model, TOKENS, [Middleware(Forwarding)])


@pytest.fixture
def client(door: FastAPI) -> Iterator[TestClient]:
    with opened(door) as found:
        yield found


def test_a_replica_answers_and_is_named(client: TestClient) -> None:
    answer = client.post(FIM, json=BODY)
    assert (answer.status_code, answer.json()["choices"][0]["text"]) == (200, "return n")
    assert answer.headers["x-calomel-replica"] == "r1"
    streamed = client.post(FIM, json={**BODY, "stream": True})
    assert streamed.text.endswith("data: [DONE]\n\n")


def test_what_a_client_calls_its_session_is_one(client: TestClient, replicas: Here) -> None:
    for name in ("w1", "w1", "w2"):
        assert client.post(FIM, json=BODY, headers={"x-session-id": name}).status_code == 200
    first, second, third = replicas.asked
    assert first == second != third


def test_a_person_with_a_token_of_his_own_is_a_session_and_no_other_can_name_it(
    client: TestClient, replicas: Here
) -> None:
    for letter, name in (("a", {}), ("b", {}), ("a", {"x-session-id": "w"}), ("b", {"x-session-id": "w"})):
        headers = {"authorization": f"Bearer {letter * 20}", **name}
        assert client.post(FIM, json=BODY, headers=headers).status_code == 200
    assert len(set(replicas.asked)) == 4


def test_without_a_name_a_connection_is_a_session(client: TestClient, replicas: Here) -> None:
    client.post(FIM, json=BODY)
    client.post(FIM, json=BODY, headers={"x-session-id": "x" * 1000})
    assert replicas.asked[0] == replicas.asked[1]
    assert "50000" in replicas.asked[0]  # the test client's port


def test_what_a_lost_replica_was_asked_is_asked_of_another(client: TestClient, replicas: Here) -> None:
    replicas.lost = [0]
    assert client.post(FIM, json=BODY).status_code == 200
    assert len(replicas.asked) == 2


def test_a_request_that_ends_its_replicas_is_given_back(client: TestClient, replicas: Here) -> None:
    replicas.lost = [0] * 9
    answer = client.post(FIM, json=BODY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "replica_lost")
    assert "retry-after" in answer.headers
    assert len(replicas.asked) == MAX_SENDINGS


def test_nobody_waits_where_no_replica_is_up(client: TestClient, replicas: Here) -> None:
    replicas.lost, replicas.ready = [0], 0
    assert client.post(FIM, json=BODY).status_code == 503
    health = client.get("/health")
    assert (health.status_code, health.json()["status"]) == (503, "loading")
    assert health.json()["replicas"] == {"wanted": 2, "ready": 0}


def test_a_stream_whose_replica_is_lost_ends_with_an_error(client: TestClient, replicas: Here) -> None:
    replicas.lost = [2]
    answer = client.post(FIM, json={**BODY, "stream": True})
    first, last = answer.text.strip().split("\n\n")
    assert '"return "' in first
    assert '"replica_lost"' in last
    assert len(replicas.asked) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_cancels_the_work(door: FastAPI, filler: FakeFiller, *, stream: bool) -> None:
    filler.gate, filler.gate_after = Event(), 1 if stream else 0
    with listening(door) as (host, port), pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"http://{host}:{port}{FIM}",
            json={**BODY, "stream": stream},
            headers={"authorization": f"Bearer {TOKEN}"},
            timeout=0.5,
        )
    assert filler.cancelled.wait(10)
    until(lambda: door.state.door.admission.taken == 0)


def test_the_door_keeps_strangers_and_the_greedy_out(client: TestClient, replicas: Here, door: FastAPI) -> None:
    assert client.post(FIM, json=BODY, headers={"authorization": "Bearer wrong"}).status_code == 401
    ann = {"authorization": f"Bearer {'a' * 20}"}
    with door.state.door.admission.place("token ann"), door.state.door.admission.place("token ann"):
        assert client.post(FIM, json=BODY, headers=ann).status_code == 429
    door.state.door.admission.draining = True
    assert client.post(FIM, json=BODY).json()["error"]["code"] == "server_draining"
    assert replicas.asked == []


def test_feedback_reaches_whoever_gave_the_answer(client: TestClient, replicas: Here) -> None:
    told = []
    for name, app in replicas.apps.items():
        app.state.door.deliveries = SimpleNamespace(decided=lambda *what, name=name: told.append((name, *what)))
    body = {"request_id": "cmpl-1", "user_action": "accept"}
    assert client.post("/feedback", json=body, headers={"authorization": ""}).json() == {"status": "ok"}
    assert told == [("r1", "cmpl-1", "accept", 0), ("r2", "cmpl-1", "accept", 0)]


def test_health_and_status_tell_of_the_replicas(client: TestClient) -> None:
    client.post(FIM, json=BODY)
    assert client.get("/health").json() == {"status": "ok", "replicas": {"wanted": 2, "ready": 2}}
    found = client.get("/calomel/v1/status").json()
    assert found["replicas"] == {"wanted": 2, "ready": 2, "name": "r1"}
    assert len(found["recent"]) == 1
