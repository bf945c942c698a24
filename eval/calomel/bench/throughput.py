"""`calomel bench load`: one client and many at a real server, beside bare forwards of the same shapes.

The server is a process of its own with its own defaults, the clients are connections from different addresses. Each
client types at a place of its own, one key a request, and asks again as soon as it has its answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Final

from calomel.bench.bare import BareEngine, Engaged
from calomel.bench.crowd import Asked, Crowd, Typist, crowd, warm
from calomel.bench.heldout import read_heldout
from calomel.bench.load import LOADED_CORES, WINDOW_SECONDS, LoadWatch
from calomel.bench.machine import describe_run
from calomel.bench.model import TokenizerMeasure
from calomel.bench.places import ANSWER_TOKENS, Place, make_places
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Value, figures_table
from calomel.bench.served import Served, served
from calomel.bench.stats import percentile

CLIENTS: Final = 64
CONTEXT: Final = 2048
# One client and many take turns, so that whatever else the machine does meets both.
ROUNDS, QUICK_ROUNDS = 3, 1
ALONE_SECONDS, TOGETHER_SECONDS = 15.0, 40.0
QUICK_ALONE_SECONDS, QUICK_TOGETHER_SECONDS = 6.0, 15.0
# Places of the client that is alone: it goes from one to the next, as long as what it types lasts.
ALONE_PLACES: Final = 8
# Enough to speak of each client's 95th percentile.
LEAST_REQUESTS, QUICK_LEAST_REQUESTS = 8, 3
# Above the limit: so many times as many clients as the server has places.
CROWDING: Final = 2.0
CROWDING_SECONDS, QUICK_CROWDING_SECONDS = 8.0, 4.0

NOTES: Final = (
    (
        "A client asks, gets its answer and asks again, one key further: nearly all of its context is in the prefix"
        f" cache. Every answer has {ANSWER_TOKENS} tokens, because the request says so (`min_tokens`, `max_tokens`)."
        " Throughput is answers a second; times are from the first byte sent to the last one received."
    ),
    (
        "`throughput_ratio`: all clients over one. `fairness`: the 95th percentile of the client that waited longest,"
        " over the median client's."
    ),
    (
        "`batched_limit_share`: throughput over that of bare forwards. The engine alone serves as many callers without"
        " HTTP (`engine_throughput`); a sample of its forwards is done again, shape by shape, over contexts of the same"
        " length without queue, cache, sampling and text, with the number of threads that is faster"
        " (`bare_throughput`)."
    ),
    (
        "`errors`: requests that were neither answered nor told to come back later, in all phases. `rejected`: those"
        " that were told to (429 or 503 with Retry-After) while the clients were as many as stated;"
        " `crowded_rejected`: while they were twice as many as the server has places."
    ),
)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What to measure, on what, and where the results go.

    Attributes:
        clients: that ask at once.
        context: tokens around each cursor, about.
        max_requests: places of the server; None for its default.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    clients: int = CLIENTS
    context: int = CONTEXT
    max_requests: int | None = None
    seed: int = 1
    quick: bool = False
    json: Path | None = None
    results: Path | None = None


@dataclass(slots=True)
class _Seen:
    """What each phase showed, round by round."""

    alone: list[Crowd] = field(default_factory=list)
    together: list[Crowd] = field(default_factory=list)
    engine: list[Engaged] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    crowded: Crowd = field(default_factory=Crowd)
    others: list[float] = field(default_factory=list)


def run_load(options: LoadOptions) -> Report:
    """Measure, write what `options` asks for, and return the report.

    Raises:
        ServedError: the server does not start.
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
    """
    provenance = describe_run()
    progress = Progress()
    seen = _Seen()
    # The server is no child that has ended, so the load of others is looked at while it does nothing.
    watch = LoadWatch()
    time.sleep(WINDOW_SECONDS)
    seen.others.append(watch.others())
    with closing(BareEngine(options.model, options.device, options.threads)) as bare:
        places = make_places(
            options.clients, options.context, read_heldout(), TokenizerMeasure(bare.tokenizer), seed=options.seed
        )
        arguments = () if options.max_requests is None else ("--max-requests", str(options.max_requests))
        with served(options.model, options.device, options.threads, arguments) as server:
            asyncio.run(_measure(options, server, bare, places, seen, progress))
    flat = flat_figures(seen.alone, seen.together, seen.engine, seen.bare, seen.crowded, options.clients)
    flat |= {
        "clients": options.clients,
        "context_tokens": round(fmean(asked.prompt for asked in _answered(seen.together)), 1),
        "loaded": seen.others[0] > LOADED_CORES,
    }
    name = "bench load quick" if options.quick else "bench load"
    report = Report(name, flat, (figures_table("Load", flat),), NOTES, provenance)
    report.write(json_path=options.json, results=options.results)
    return report


async def _measure(
    options: LoadOptions,
    server: Served,
    bare: BareEngine,
    places: Sequence[Place],
    seen: _Seen,
    progress: Progress,
) -> None:
    quick = options.quick
    alone = Typist(server, 0, places[:ALONE_PLACES])
    many = [Typist(server, number + 1, [place]) for number, place in enumerate(places)]
    progress.say(f"{len(places)} contexts are read")
    await warm(many, 1)
    await asyncio.to_thread(bare.warm, places)
    rounds = QUICK_ROUNDS if quick else ROUNDS
    progress.phase("rounds", rounds)
    for _ in range(rounds):
        together = QUICK_TOGETHER_SECONDS if quick else TOGETHER_SECONDS
        least = QUICK_LEAST_REQUESTS if quick else LEAST_REQUESTS
        seen.together.append(await crowd(many, together, least=least))
        await warm([alone], ALONE_PLACES)
        seen.alone.append(await crowd([alone], QUICK_ALONE_SECONDS if quick else ALONE_SECONDS))
        engaged = await asyncio.to_thread(bare.engage, places, together / 2)
        seen.engine.append(engaged)
        seen.bare.append(await asyncio.to_thread(bare.forwards, engaged.shapes, options.context))
        progress.step()
    await _crowded(options, server, places, seen)
    for typist in (alone, *many):
        typist.leave()


async def _crowded(options: LoadOptions, server: Served, places: Sequence[Place], seen: _Seen) -> None:
    """More clients than the server has places: who is refused, and how."""
    count = int((options.max_requests or _default_places()) * CROWDING)
    typists = [Typist(server, 1000 + number, [places[number % len(places)]]) for number in range(count)]
    seen.crowded = await crowd(typists, QUICK_CROWDING_SECONDS if options.quick else CROWDING_SECONDS)
    for typist in typists:
        typist.leave()


def _default_places() -> int:
    from calomel.server.settings import ServerSettings

    return int(ServerSettings.model_fields["max_requests"].default)


def flat_figures(
    alone: Sequence[Crowd],
    together: Sequence[Crowd],
    engine: Sequence[Engaged],
    bare: Sequence[float],
    crowded: Crowd,
    clients: int,
) -> dict[str, Value]:
    """The figures of all rounds; `bare` has the seconds that the forwards of each `engine` took alone."""
    many = f"_{clients}"
    one, all_of_them = _throughput(alone), _throughput(together)
    engine_seconds = sum(each.seconds for each in engine)
    answers = sum(each.answers for each in engine)
    limit = answers / sum(bare) if sum(bare) else 0.0
    p95 = [value for crowd in together for value in crowd.client_p95()]
    median = percentile(p95, 50)
    answered = [*_answered(alone), *_answered(together)]
    shapes = [shape for each in engine for shape in each.shapes]
    return {
        "throughput_1": _rounded(one),
        f"throughput{many}": _rounded(all_of_them),
        "throughput_ratio": _rounded(all_of_them / one if one else None),
        "batched_limit_share": _rounded(all_of_them / limit if limit else None),
        "bare_throughput": _rounded(limit),
        "engine_throughput": _rounded(answers / engine_seconds if engine_seconds else None),
        "p50_1_ms": _rounded(_percentile(alone, 50)),
        "p95_1_ms": _rounded(_percentile(alone, 95)),
        f"p50{many}_ms": _rounded(_percentile(together, 50)),
        f"p95{many}_ms": _rounded(_percentile(together, 95)),
        "fairness": _rounded(max(p95) / median if median else None),
        "errors": sum(crowd.errors for crowd in (*alone, *together, crowded)),
        "rejected": sum(crowd.rejected for crowd in (*alone, *together)),
        "crowded_clients": len(crowded.clients),
        "crowded_rejected": crowded.rejected,
        "crowded_answered": sum(asked.answered for asked in crowded.asked),
        "answers_1": len(_answered(alone)),
        f"answers{many}": len(_answered(together)),
        "answer_tokens": _rounded(fmean(asked.tokens for asked in answered) if answered else None),
        "cached_share": _rounded(
            sum(asked.cached for asked in answered) / sum(asked.prompt for asked in answered) if answered else None
        ),
        "forwards_per_answer": _rounded(len(shapes) / answers if answers else None),
        "requests_per_forward": _rounded(fmean(shape.requests for shape in shapes) if shapes else None),
        "rows_per_forward": _rounded(fmean(shape.rows for shape in shapes) if shapes else None),
    }


def _answered(crowds: Sequence[Crowd]) -> list[Asked]:
    return [asked for crowd in crowds for asked in crowd.asked if asked.answered]


def _throughput(crowds: Sequence[Crowd]) -> float:
    seconds = sum(crowd.seconds for crowd in crowds)
    return sum(crowd.in_time for crowd in crowds) / seconds if seconds else 0.0


def _percentile(crowds: Sequence[Crowd], percent: float) -> float | None:
    return percentile([value for crowd in crowds for value in crowd.milliseconds()], percent)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
