from __future__ import annotations

import logging
import socket
from threading import Event
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

ASK = {"model": "m", "prompt": "x"}
PATH = "/v1/fim/completions"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_before_the_answer_cancels_the_work(
    live: SimpleNamespace, filler: Any, *, stream: bool
) -> None:
    filler.gate = Event()
    with httpx.Client(base_url=live.url, headers=live.headers, timeout=0.5) as client, pytest.raises(httpx.ReadTimeout):
        client.post(PATH, json={**ASK, "stream": stream})

    assert filler.cancelled.wait(10)
    live.until(lambda: live.app.state.door.admission.taken == 0)


def test_a_client_that_hangs_up_amid_a_stream_cancels_the_work(live: SimpleNamespace, filler: Any) -> None:
    filler.gate, filler.gate_after = Event(), 1
    with (
        httpx.Client(base_url=live.url, headers=live.headers) as client,
        client.stream("POST", PATH, json={**ASK, "stream": True}) as answer,
    ):
        lines = answer.iter_lines()
        assert '"return "' in next(lines)
        assert live.app.state.door.admission.taken == 1

    assert filler.cancelled.wait(10)
    live.until(lambda: live.app.state.door.admission.taken == 0)


def test_an_answer_that_is_read_to_its_end_cancels_nothing(live: SimpleNamespace, filler: Any) -> None:
    with httpx.Client(base_url=live.url, headers=live.headers) as client:
        assert client.post(PATH, json=ASK).status_code == 200
        assert client.post(PATH, json={**ASK, "stream": True}).text.endswith("data: [DONE]\n\n")

    assert not filler.cancelled.is_set()
    live.until(lambda: live.app.state.door.admission.taken == 0)


def test_a_client_that_hangs_up_amid_its_body_leaves_no_trace_in_the_log(
    live: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "calomel.server")
    host, port = live.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(
            f"POST {PATH} HTTP/1.1\r\nhost: {host}\r\nauthorization: {live.headers['authorization']}\r\n"
            "content-type: application/json\r\ncontent-length: 500\r\n\r\n{".encode()
        )
    with httpx.Client(base_url=live.url, headers=live.headers) as other:
        assert other.post(PATH, json=ASK).status_code == 200

    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []
