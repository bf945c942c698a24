"""`calomel bench load`: a real server under many clients, how long one more client waits, and what is not released.

The server is a process of its own with its defaults, the clients are connections from different addresses. Each types
at a place of its own, one key per request, and asks again as soon as it has its answer; some disconnect halfway.
Meanwhile one more client asks for a short text now and then, and the server's memory and open files are sampled. In
the end everything must be released.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

import httpx

from calomel.bench.holes import CHARACTERS_PER_TOKEN, Cell, cell_holes
from calomel.bench.model import OK, PATIENCE, Served, served
from calomel.report.heldout import HeldoutFile, read_heldout
from calomel.report.result import Report, Value, figures_table, percentile
from calomel.report.running import Progress, load_before
from calomel.storage import WINDOWS, psutil

MINUTES, QUICK_MINUTES = 2.0, 0.25
ALONE_SECONDS, QUICK_ALONE_SECONDS = 15.0, 6.0
# A fixed answer length, so that runs are comparable.
ANSWER_TOKENS: Final = 32
# A client drops one in this many requests within this many seconds.
_LEAVES, _LEAVES_WITHIN = 16, 0.3
_SAMPLE_SECONDS: Final = 2.0
# Leaks are looked for this long after the last client left: engine steps end and connections close meanwhile.
_SETTLE_SECONDS: Final = 3.0
# The extra client's request while the others load the server, and its pause between requests.
_PERSON: Final = {"model": "m", "prompt": "def add(a, b):\n    return ", "suffix": "\n", "max_tokens": 16}
_PERSON_SECONDS: Final = 0.5
# A refused client of the bench retries sooner than the server says: the server must cope with that.
_PAUSE_SECONDS: Final = 0.1
# Tokens of a context beyond the requested size: markers, and typed text.
_GROWTH: Final = 512
_PATH: Final = "/v1/fim/completions"
_LATER: Final = frozenset({429, 503})

NOTES: Final = (
    (
        "A client asks, waits for the answer and asks again, one key later: nearly all of its context is in the"
        f" prefix cache. Every answer has {ANSWER_TOKENS} tokens (`min_tokens`, `max_tokens`); clients abandon one"
        f" request in {_LEAVES} within {_LEAVES_WITHIN} seconds. Throughput is answers a second; times run from the"
        " first byte sent to the last one received."
    ),
    "`throughput_ratio`: all clients over one, on a server that keeps a context of each (`--cache-tokens`).",
    (
        f"`errors`: requests that got neither an answer within {PATIENCE:.0f} seconds nor a request to retry later,"
        " in all phases. `rejected`: those asked to retry later (429 or 503 with Retry-After) because the server was"
        " full."
    ),
    (
        "`person_…_ms`: answers of at most 16 tokens to one more client with its own address, which asks again"
        f" {_PERSON_SECONDS} seconds after each answer."
    ),
    (
        "`memory_…_mib`: resident memory before the first request, at most, and at the end. `files_left` and"
        " `places_left`: open files of the server beyond those before the first request, and requests that still have a"
        " place, after the last client has gone."
    ),
)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What to measure, and on what.

    Attributes:
        clients: how many ask concurrently.
        minutes: how long; None: 2, quick a quarter of one.
        context: approximate tokens around each cursor.
        max_requests: the server's limit on concurrent requests; None for its default.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    clients: int = 64
    minutes: float | None = None
    context: int = 2048
    max_requests: int | None = None
    seed: int = 1
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor in a file: the text before and after it, and what its user types there, one character per request."""

    prefix: str
    suffix: str
    typed: str

    def request(self, keys: int) -> dict[str, Any]:
        """The body of a fill after this many keystrokes; starts over after the last."""
        at = keys % (len(self.typed) + 1)
        tokens = {"max_tokens": ANSWER_TOKENS, "min_tokens": ANSWER_TOKENS, "stop": []}
        return {"model": "nano", "prompt": self.prefix + self.typed[:at], "suffix": self.suffix, **tokens}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: when it began, how long it took, its status (0: no answer), tokens of its prompt, and its answer.

    `later`: refused with a Retry-After header.
    """

    began: float
    seconds: float
    status: int
    later: bool = False
    prompt: int = 0
    cached: int = 0
    text: str = ""

    @property
    def answered(self) -> bool:
        """Whether there was an answer."""
        return self.status == OK


@dataclass(slots=True)
class Crowd:
    """What a number of clients saw.

    Attributes:
        clients: per client, its requests in order.
        began: when the first of them asked.
        seconds: from there until the first of them finished: all were active for this long.
        left: requests that their client dropped.
    """

    clients: list[list[Asked]] = field(default_factory=list)
    began: float = 0.0
    seconds: float = 0.0
    left: int = 0

    @property
    def asked(self) -> list[Asked]:
        """All requests that were not dropped."""
        return [asked for client in self.clients for asked in client]

    @property
    def answered(self) -> list[Asked]:
        """Those that were answered."""
        return [asked for asked in self.asked if asked.answered]

    @property
    def errors(self) -> int:
        """Requests neither answered nor rejected."""
        return sum(not asked.answered and not asked.later for asked in self.asked)

    @property
    def rejected(self) -> int:
        """Requests refused with a Retry-After header."""
        return sum(asked.later for asked in self.asked)

    @property
    def throughput(self) -> float:
        """Answers per second while all clients were active."""
        end = self.began + self.seconds
        done = sum(asked.began + asked.seconds <= end for asked in self.answered)
        return done / self.seconds if self.seconds else 0.0

    def milliseconds(self, percent: float) -> float | None:
        """A percentile of the milliseconds of all answers."""
        return percentile([asked.seconds * 1e3 for asked in self.answered], percent)


@dataclass(frozen=True, slots=True)
class Sample:
    """The server at one moment: resident MiB and open files; zeros if it has ended."""

    memory: float = 0.0
    files: int = 0


@dataclass(slots=True)
class Seen:
    """What was measured in a run, phase by phase."""

    before: Sample = field(default_factory=Sample)
    alone: Crowd = field(default_factory=Crowd)
    together: Crowd = field(default_factory=Crowd)
    waits: list[float] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    after: Sample = field(default_factory=Sample)
    places_left: int | None = None


def run_load(options: LoadOptions) -> Report:
    """Run the bench.

    Raises:
        ServedError: the server does not start.
        BenchDataError: the held-out files are absent or damaged.
    """
    load = load_before()
    places = make_places(options.clients, options.context, read_heldout(), seed=options.seed)
    # On a CPU the server's cache holds one person's contexts by default.
    arguments: tuple[str, ...] = ("--cache-tokens", str(options.clients * (options.context + _GROWTH)))
    if options.max_requests is not None:
        arguments += ("--max-requests", str(options.max_requests))
    with served(options.model, options.device, options.threads, arguments) as server:
        seen = asyncio.run(_measure(options, server, places, Progress()))
    flat = {**flat_figures(seen), "clients": options.clients, **load}
    name = "bench load quick" if options.quick else "bench load"
    return Report(name, flat, (figures_table("Load", flat),), NOTES)


def flat_figures(seen: Seen) -> dict[str, Value]:
    """The figures of a run."""
    alone, together = seen.alone, seen.together
    answered = together.answered
    prompt = sum(asked.prompt for asked in answered)
    memory = [sample.memory for sample in seen.samples]
    figures: dict[str, float | None] = {
        "throughput_alone": alone.throughput,
        "throughput": together.throughput,
        "throughput_ratio": together.throughput / alone.throughput if alone.throughput else None,
        "p50_alone_ms": alone.milliseconds(50),
        "p95_alone_ms": alone.milliseconds(95),
        "p50_ms": together.milliseconds(50),
        "p95_ms": together.milliseconds(95),
        "person_p50_ms": percentile(seen.waits, 50),
        "person_p95_ms": percentile(seen.waits, 95),
        "person_most_ms": max(seen.waits, default=None),
        "cached_share": sum(asked.cached for asked in answered) / prompt if prompt else None,
        "context_tokens": prompt / len(answered) if answered else None,
        "memory_start_mib": seen.before.memory,
        "memory_most_mib": max(memory, default=None),
        "memory_end_mib": seen.after.memory,
    }
    return {
        "seconds": together.seconds,
        "requests": len(alone.asked) + len(together.asked) + together.left,
        "left": together.left,
        "errors": alone.errors + together.errors,
        "rejected": alone.rejected + together.rejected,
        **figures,
        "files_left": seen.after.files - seen.before.files,
        "places_left": seen.places_left,
    }


def make_places(number: int, context: int, files: Sequence[HeldoutFile], *, seed: int) -> tuple[Place, ...]:
    """`number` different places with about `context` tokens around each, most of them before the cursor."""
    cell = Cell(int(0.7 * context), ANSWER_TOKENS)
    holes = cell_holes(cell, files, lambda text: len(text) // CHARACTERS_PER_TOKEN, seed=seed)
    behind = int(0.2 * context * CHARACTERS_PER_TOKEN)
    return tuple(Place(hole.prefix, hole.suffix[:behind], hole.answer) for hole in islice(holes, number))


async def _measure(options: LoadOptions, server: Served, places: Sequence[Place], progress: Progress) -> Seen:
    seen = Seen(before=look(server.pid))
    minutes = options.minutes or (QUICK_MINUTES if options.quick else MINUTES)
    progress.say(f"read {len(places)} contexts")
    # A few at once, so that every context is cached before anything is measured.
    for first in range(0, len(places), 4):
        await crowd(server, places[first : first + 4], 0.0, first_client=first)
    seen.alone = await crowd(server, places[:1], QUICK_ALONE_SECONDS if options.quick else ALONE_SECONDS)
    progress.say(f"{len(places)} clients for {minutes * 60:.0f} seconds")
    number = len(places)
    beside = [
        asyncio.create_task(_watch(server.pid, seen.samples)),
        asyncio.create_task(_person(server, number, seen.waits)),
    ]
    seen.together = await crowd(server, places, minutes * 60, leaves=_LEAVES)
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    await asyncio.sleep(_SETTLE_SECONDS)
    async with server.client() as client:
        seen.places_left = (await client.get("/calomel/v1/status")).json()["queue"]["running"]
    await asyncio.sleep(_SETTLE_SECONDS)
    seen.after = look(server.pid)
    return seen


async def crowd(
    server: Served, places: Sequence[Place], seconds: float, *, first_client: int = 0, leaves: int | None = None
) -> Crowd:
    """A client at each place; all ask concurrently, for `seconds` and at least once.

    One request in `leaves` is dropped midway; None for none.
    """
    began = time.perf_counter()
    found = Crowd([[] for _ in places], began)
    ends: list[float] = []

    async def work(number: int) -> None:
        mine = found.clients[number]
        async with server.client(first_client + number) as client:
            for keys in count(number if leaves else 1):
                if leaves and keys % leaves == 0:
                    found.left += 1
                    with contextlib.suppress(TimeoutError, httpx.HTTPError):
                        request = client.post(_PATH, json=places[number].request(keys))
                        await asyncio.wait_for(request, _LEAVES_WITHIN * (keys % 7) / 6)
                    continue
                mine.append(await ask(client, places[number].request(keys)))
                if time.perf_counter() >= began + seconds:
                    break
                if not mine[-1].answered:
                    await asyncio.sleep(_PAUSE_SECONDS)
        ends.append(time.perf_counter())

    await asyncio.gather(*map(work, range(len(places))))
    found.seconds = min(ends, default=began) - began
    return found


async def ask(client: httpx.AsyncClient, body: dict[str, Any]) -> Asked:
    """Sends one request; raises nothing."""
    began = time.perf_counter()
    try:
        reply = await client.post(_PATH, json=body)
    except httpx.HTTPError:
        return Asked(began, time.perf_counter() - began, 0)
    seconds = time.perf_counter() - began
    if reply.status_code != OK:
        later = reply.status_code in _LATER and "retry-after" in reply.headers
        return Asked(began, seconds, reply.status_code, later)
    body = reply.json()
    usage, text = body["usage"], body["choices"][0].get("text", "")
    return Asked(began, seconds, OK, False, usage["prompt_tokens"], usage.get("cached_input_tokens", 0), text)


async def _person(server: Served, number: int, waits: list[float]) -> None:
    """One more client, from an address of its own; records the milliseconds of its answers."""
    async with server.client(number) as client:
        while True:
            asked = await ask(client, _PERSON)
            if asked.answered:
                waits.append(asked.seconds * 1e3)
            await asyncio.sleep(_PERSON_SECONDS)


async def _watch(pid: int, samples: list[Sample]) -> None:
    while True:
        samples.append(look(pid))
        await asyncio.sleep(_SAMPLE_SECONDS)


def look(pid: int) -> Sample:
    """The process at this moment; zeros if it has ended."""
    library = psutil()
    with contextlib.suppress(library.Error):
        process = library.Process(pid)
        files = process.num_handles() if WINDOWS else process.num_fds()
        return Sample(process.memory_info().rss / 2**20, files)
    return Sample()
