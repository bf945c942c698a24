"""`calomel bench replicas`: a real server with replicas under load, of which one is killed.

The clients type as those of `bench load`. One replica is killed (SIGKILL) while all of them wait for answers; when
another has taken its place, they go on for a while. Then a server with one engine is asked everything once more: the
answers must be the same.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from calomel.bench.crowd import PATH, source_address
from calomel.bench.heldout import read_heldout
from calomel.bench.machine import describe_run
from calomel.bench.model import TokenizerMeasure
from calomel.bench.places import Place, make_places
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Value, figures_table
from calomel.bench.served import Served, served
from calomel.bench.stats import percentile
from calomel.bench.wire_client import WireClient, WireError

REPLICAS: Final = 2
CLIENTS: Final = 16
CONTEXT: Final = 1024
SECONDS, QUICK_SECONDS = 20.0, 8.0
# Ray's processes and the replicas start side by side, on whatever else the machine does.
START_SECONDS: Final = 600.0
# For another replica to come up; what happens until then is "during".
MOST_SECONDS: Final = 180.0
_OK: Final = 200
_PAUSE_SECONDS: Final = 0.1
_POLL_SECONDS: Final = 0.5
_STATUS: Final = "/calomel/v1/status"

NOTES: Final = (
    (
        "A client asks, gets its answer and asks again, one key further, from a connection of its own, which is its"
        " session. `before`: until the replica is killed; `during`: requests that were under way or began between that"
        " and the moment when all replicas are up again; `after`: the rest."
    ),
    (
        "`killed_requests`: under way when the replica was killed, at all replicas. `retried`: asked of another because"
        " theirs was lost. `lost`: not answered. `doubled`: answered twice. `differing`: answers that are not those of"
        " a server with one engine."
    ),
    (
        "`cached_share`: of the context tokens of all requests before the kill, those that a replica had in its cache;"
        " `cached_share_one`: the same requests at the server with one engine."
    ),
)


@dataclass(frozen=True, slots=True)
class ReplicasOptions:
    """What to measure, on what, and where the results go.

    Attributes:
        replicas: of the server.
        clients: that ask at once.
        context: tokens around each cursor, about.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    replicas: int = REPLICAS
    clients: int = CLIENTS
    context: int = CONTEXT
    seed: int = 1
    quick: bool = False
    json: Path | None = None
    results: Path | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """One request and what came of it.

    Attributes:
        client: who asked.
        keys: how far it had typed.
        began, ended: seconds on the clock of the bench.
        status: of the answer; 0 when there was none.
        text: of the answer.
        prompt, cached: context tokens, and those of them that were in a cache.
    """

    client: int
    keys: int
    began: float
    ended: float
    status: int
    text: str = ""
    prompt: int = 0
    cached: int = 0

    @property
    def milliseconds(self) -> float:
        """From the first byte sent to the last one received."""
        return (self.ended - self.began) * 1e3


@dataclass(slots=True)
class Run:
    """What happened.

    Attributes:
        answers: in the order of their ends.
        killed: when the replica was.
        whole: when all replicas were up again; None: not in time.
        status: what the server said of its replicas in the end.
    """

    answers: list[Answered] = field(default_factory=list)
    killed: float = 0.0
    whole: float | None = None
    status: Mapping[str, Any] = field(default_factory=dict)


def run_replicas(options: ReplicasOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        ServedError: the server does not start.
        BenchDataError: the held-out files are absent or damaged.
    """
    from calomel.suggest.filler import open_filler

    provenance = describe_run()
    progress = Progress()
    with_tokens = open_filler(options.model, cache_tokens=4096)
    with_tokens.close()
    measure = TokenizerMeasure(with_tokens.tokenizer)
    places = make_places(options.clients, options.context, read_heldout(), measure, seed=options.seed)
    progress.say(f"{options.replicas} replicas are started")
    arguments = ("--replicas", str(options.replicas))
    with served(options.model, options.device, options.threads, arguments, START_SECONDS) as server:
        run = asyncio.run(under_load(server, places, QUICK_SECONDS if options.quick else SECONDS))
    progress.say("one engine is asked the same")
    with served(options.model, options.device, options.threads) as server:
        one = asyncio.run(again(server, places, [answer for answer in run.answers if answer.status == _OK]))
    flat = figures(run, one) | {"replicas": options.replicas, "clients": options.clients}
    name = "bench replicas quick" if options.quick else "bench replicas"
    report = Report(name, flat, (figures_table("Replicas", flat),), NOTES, provenance)
    report.write(json_path=options.json, results=options.results)
    return report


async def under_load(server: Served, places: Sequence[Place], seconds: float) -> Run:
    """Let clients type, kill a replica while they wait, and go on until all is well again, and for a while."""
    run = Run()
    clients = [_client(server, number) for number in range(len(places))]
    stop = asyncio.Event()
    # Every context is read once before anything counts.
    for number, place in enumerate(places):
        await _ask(clients[number], number, place, 0)

    async def work(number: int) -> None:
        keys = 0
        while not stop.is_set():
            keys += 1
            run.answers.append(await _ask(clients[number], number, places[number], keys))
            if run.answers[-1].status != _OK:
                await asyncio.sleep(_PAUSE_SECONDS)

    working = [asyncio.create_task(work(number)) for number in range(len(places))]
    await asyncio.sleep(seconds)
    looking = WireClient(server.host, server.port, server.token)
    before = await _replicas(looking)
    os.kill(max(before["up"], key=lambda each: each["answered"])["pid"], signal.SIGKILL)
    run.killed = time.perf_counter()
    while run.whole is None and time.perf_counter() - run.killed < MOST_SECONDS:
        await asyncio.sleep(_POLL_SECONDS)
        now = await _replicas(looking)
        if now["restarts"] > before["restarts"] and len(now["up"]) == now["wanted"]:
            run.whole = time.perf_counter()
    await asyncio.sleep(seconds)
    stop.set()
    await asyncio.gather(*working)
    run.status = await _replicas(looking)
    for client in (*clients, looking):
        client.drop()
    return run


async def again(
    server: Served, places: Sequence[Place], answers: Sequence[Answered]
) -> dict[tuple[int, int], Answered]:
    """Everything once more, client by client, by client and keys."""
    found: dict[tuple[int, int], Answered] = {}
    for number, place in enumerate(places):
        client = _client(server, number)
        for keys in sorted({0, *(answer.keys for answer in answers if answer.client == number)}):
            found[number, keys] = await _ask(client, number, place, keys)
        client.drop()
    return found


def figures(run: Run, one: Mapping[tuple[int, int], Answered]) -> dict[str, Value]:
    """The figures of a run, `one` being what a single engine answered."""
    whole = float("inf") if run.whole is None else run.whole
    answered = [answer for answer in run.answers if answer.status == _OK]
    phases = {
        "before": [answer for answer in answered if answer.ended <= run.killed],
        "during": [answer for answer in answered if answer.ended > run.killed and answer.began < whole],
        "after": [answer for answer in answered if answer.began >= whole],
    }
    flat: dict[str, Value] = {}
    for name, answers in phases.items():
        times = [answer.milliseconds for answer in answers]
        for percent in (50, 95):
            value = percentile(times, percent)
            flat[f"p{percent}_{name}_ms"] = None if value is None else round(value, 1)
        flat[f"answers_{name}"] = len(answers)
    warm = phases["before"]
    same = [one[answer.client, answer.keys] for answer in warm]
    return flat | {
        "longest_during_ms": round(max((answer.milliseconds for answer in phases["during"]), default=0.0), 1),
        "whole_again_seconds": None if run.whole is None else round(run.whole - run.killed, 1),
        "killed_requests": sum(answer.began <= run.killed < answer.ended for answer in run.answers),
        "retried": run.status["retried"],
        "lost": len(run.answers) - len(answered),
        "doubled": run.status["doubled"],
        "differing": sum(one[answer.client, answer.keys].text != answer.text for answer in answered),
        "cached_share": _share(warm),
        "cached_share_one": _share(same),
    }


def _share(answers: Sequence[Answered]) -> float | None:
    prompt = sum(answer.prompt for answer in answers)
    return round(sum(answer.cached for answer in answers) / prompt, 4) if prompt else None


def _client(server: Served, number: int) -> WireClient:
    return WireClient(server.host, server.port, server.token, source_address(server.host, number))


async def _ask(client: WireClient, number: int, place: Place, keys: int) -> Answered:
    """One request; raises nothing."""
    began = time.perf_counter()
    try:
        reply = await client.post(PATH, json.dumps(place.request(keys)).encode())
    except (WireError, OSError):
        client.drop()
        return Answered(number, keys, began, time.perf_counter(), 0)
    ended = time.perf_counter()
    if reply.status != _OK:
        return Answered(number, keys, began, ended, reply.status)
    body = reply.json()
    usage = body["usage"]
    text = body["choices"][0]["text"]
    return Answered(number, keys, began, ended, _OK, text, usage["prompt_tokens"], usage["cached_input_tokens"])


async def _replicas(client: WireClient) -> dict[str, Any]:
    """What the server says of its replicas."""
    found: dict[str, Any] = (await client.get(_STATUS)).json()["replicas"]
    return found
