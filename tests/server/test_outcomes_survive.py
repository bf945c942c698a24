"""A server that is killed while it writes outcomes: at most the last line is lost, and the next server goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from calomel.suggest.outcome_history import read_outcomes
from calomel.weights import nano_path

pytestmark = pytest.mark.e2e

# Feedback as fast as it can be taken, by the code of the route's other side.
WRITER = """
import itertools, sys
from pathlib import Path
from calomel.server.deliveries import Deliveries
from calomel.suggest.outcome_log import OutcomeLog
deliveries = Deliveries(OutcomeLog(Path(sys.argv[1]), max_bytes=200_000, kept_files=50))
print("ready", flush=True)
for number in itertools.count():
    deliveries.remember(f"cmpl-{number}", "fill", "m", 0.5, "text" * 100)
    deliveries.decided(f"cmpl-{number}", "accept")
"""


def test_a_log_that_is_killed_in_the_middle_stays_readable(tmp_path: Path) -> None:
    log = tmp_path / "outcomes.jsonl"
    written = 0
    for round_ in range(1, 6):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(log)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.05 * round_)
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL

        history = read_outcomes(log)

        # A torn line is left where it is, so each kill may have made one.
        assert history.bad_lines <= round_
        assert len(history.records) > written
        written = len(history.records)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    runtime_file = folder / "server.json"
    command = [sys.executable, "-m", "calomel.cli", "serve", "--port", "0", "--runtime-file", str(runtime_file)]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Calomel listens on ")
            left = json.loads(runtime_file.read_text())
            headers = {"authorization": f"Bearer {left['token']}"}
            with httpx.Client(base_url=left["url"], headers=headers, timeout=60) as client:
                end = time.monotonic() + 60
                while client.get("/health").status_code != 200:
                    assert time.monotonic() < end
                    time.sleep(0.05)
                yield process, client
        finally:
            process.kill()


@pytest.mark.skipif(not (nano_path() / "model.safetensors").exists(), reason="no shipped weights")
def test_feedback_that_was_taken_before_a_kill_is_in_the_log(tmp_path: Path) -> None:
    taken = []
    for _ in range(2):
        with serving(tmp_path) as (process, client):
            for _ in range(5):
                ask: dict[str, Any] = {"model": "m", "prompt": "def add(a, b):\n    return ", "max_tokens": 4}
                given = client.post("/v1/fim/completions", json=ask).json()["id"]
                told = {"request_id": given, "user_action": "accept"}
                assert client.post("/feedback", json=told).json() == {"status": "ok"}
                taken.append(given)
            process.send_signal(signal.SIGKILL)
            process.wait(30)

    history = read_outcomes(tmp_path / "calomel" / "outcomes.jsonl")

    assert history.bad_lines == 0
    assert [each.id for each in history.records if each.outcome == "accepted"] == taken
