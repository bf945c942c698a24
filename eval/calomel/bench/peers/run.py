"""`calomel bench peers`: milliseconds for every character that the author would have kept, ours beside other engines.

The same weights, the same prompts, the same holes, in one run and in turns. A place is encoded once by each, and every
hole is asked for one keystroke earlier first, which is not timed. Beside it two comparisons of speed alone: half a
billion random weights, and DiffusionGemma's loop.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Final, Literal

from calomel.bench.heldout import read_heldout
from calomel.bench.load import LoadWatch
from calomel.bench.machine import describe_run
from calomel.bench.model import OpenModel, open_model
from calomel.bench.peers.cases import as_right_as, flat_keys, measure, ratio_table, table, times_of
from calomel.bench.peers.contenders import Contender, ours, theirs
from calomel.bench.peers.fastest import Offer, open_peers
from calomel.bench.peers.gemma_loop import QUICK_TURNS, TURNS, loop_keys, loop_table, measure_loop
from calomel.bench.peers.half_billion import (
    half_a_billion,
    half_billion_keys,
    half_billion_table,
    measure_half_billion,
)
from calomel.bench.peers.moments import Moment, moments_going_down
from calomel.bench.peers.peer import Peer, PeerUnavailableError
from calomel.bench.progress import Progress
from calomel.bench.report import Report, Table, Value

Part = Literal["holes", "half-billion", "diffusion-gemma"]
PARTS: Final[tuple[Part, ...]] = ("holes", "half-billion", "diffusion-gemma")

CONTEXT, QUICK_CONTEXT = 8192, 2048
HOLES, QUICK_HOLES = 120, 24
# Holes of a place: each place is encoded once by every contender.
MOMENTS, QUICK_MOMENTS = 10, 6
# A peer is asked so often with everything that is tried of it; it runs with what was fastest.
TRIALS = 3

NOTES: Final[dict[Part, tuple[str, ...]]] = {
    "holes": (
        (
            "Rests of lines, going down held-out files behind other files of their language: what stands above grows"
            " from hole to hole. Every contender keeps keys and values of the whole last prompt, ours in its prefix"
            " cache, and reads what is new behind it. Each is asked one keystroke earlier, untimed; timed is"
            " rendering and tokenizing the prompt, what is new of it, and the answer up to its end or its line's."
        ),
        (
            "`ours` is what every door over HTTP does: the model's answer, from the beginning of the cursor's word on,"
            " or text that stands elsewhere between the same neighbours where that is likelier right (docs/recall.md)."
            " `ours model alone` answers the bare prompt, as the peers do."
        ),
        "Accepted characters: as many of the answer's beginning as the author wrote. A wrong first one makes it none.",
        (
            "transformers runs its own class of these weights, in a loop that is shorter than `generate`. llama.cpp"
            " runs a twin without sliding windows, which its layout does not know: beyond them it is another model."
            " `llamacpp as right as transformers` takes its time, and as many right characters as transformers had if"
            " those are more. Each runs with the number type, cache and threads that were fastest for it."
        ),
        "Brackets are 95 % intervals: Wilson's for shares, a paired bootstrap for ratios.",
    ),
    "half-billion": (
        (
            "Half a billion random weights in the sizes of Qwen2.5-0.5B, laid out as Qwen3: one answer of 16 tokens"
            " behind a warm context whose last token is new. Speed alone: what the shipped policy would cost in quality"
            " at this size, random weights can not tell. Of several settings the fastest counts, for ours too."
        ),
    ),
    "diffusion-gemma": (
        (
            "A random DiffusionGemma of 15 million parameters: one canvas of 256 tokens behind 512, in turns with"
            " `generate` of transformers, with the same seed; processor time, median and range of the turns."
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class PeersOptions:
    """What to measure and where the results go.

    Attributes:
        model: checkpoint folder in our own layout; None is the one that ships.
        context: tokens of prompt; None: 8,192, quick 2,048.
        holes: None: 120, quick 24.
        threads: numbers of threads to try for the peers; none for 1 and all cores.
        parts: what of it.
    """

    model: Path | None = None
    context: int | None = None
    holes: int | None = None
    seed: int = 1
    quick: bool = False
    threads: tuple[int, ...] = ()
    parts: tuple[Part, ...] = PARTS
    heldout: Path | None = None
    json: Path | None = None
    results: Path | None = None
    command: str | None = None


@dataclass(slots=True)
class _Findings:
    flat: dict[str, Value] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run_peers(options: PeersOptions) -> Report:
    """Measure, write what `options` asks for, and return the report. A peer that is absent is left out, and said so.

    Raises:
        BenchDataError: the held-out files are absent or damaged.
        CheckpointError: there is no checkpoint to measure.
    """
    progress = Progress()
    provenance = describe_run(options.command)
    found = _Findings({"quick": options.quick, "seed": options.seed})
    load = LoadWatch()
    missing: list[str] = []
    for part in (part for part in PARTS if part in options.parts):
        try:
            missing += _PARTS[part](options, progress, found)
        except PeerUnavailableError as error:
            missing.append(str(error))
        found.notes += NOTES[part]
    state = load.summary([load.others()])
    found.flat |= {"loaded": state.loaded, "load_other_cores": state.others_mean}
    report = Report(
        "bench peers quick" if options.quick else "bench peers",
        found.flat,
        tuple(found.tables),
        (*found.notes, *(f"Left out: {why}." for why in dict.fromkeys(missing))),
        provenance,
    )
    report.write(json_path=options.json, results=options.results)
    return report


def _holes(options: PeersOptions, progress: Progress, found: _Findings) -> list[str]:
    """The same weights in other engines; returns why some are missing."""
    context = options.context or (QUICK_CONTEXT if options.quick else CONTEXT)
    count = options.holes or (QUICK_HOLES if options.quick else HOLES)
    each = QUICK_MOMENTS if options.quick else MOMENTS
    with ExitStack() as stack:
        model = stack.enter_context(open_model(options.model))
        moments = moments_going_down(
            read_heldout(options.heldout),
            model.measure,
            context=context,
            places=-(-count // each),
            moments=each,
            seed=options.seed,
        )[:count]
        threads = options.threads or tuple(sorted({1, os.cpu_count() or 1}))
        offer = Offer(model.folder, context, threads, options.quick)
        trial = partial(_trial, model, moments[:TRIALS], context)
        peers, missing = stack.enter_context(open_peers(offer, trial, progress.say))
        contenders: tuple[Contender, ...] = (*ours(model), *(theirs(model, peer) for peer in peers))
        cases = measure(moments, contenders, context, progress)
        names = [contender.name for contender in contenders]
        found.flat |= {"context": context, "weights": model.weights_hash}
        found.flat |= {f"settings_{peer.name}": peer.settings for peer in peers}
        found.flat |= flat_keys(cases, names)
        if {"llamacpp", "transformers"} <= set(names):
            as_right_as(found.flat, cases, "llamacpp", "transformers")
        found.tables += [table(cases, names), ratio_table(found.flat, names)]
        found.notes += [f"{peer.name}: {peer.settings}." for peer in peers]
    return missing


def _half_billion(options: PeersOptions, progress: Progress, found: _Findings) -> list[str]:
    threads = max(options.threads) if options.threads else None
    paces, missing = measure_half_billion(half_a_billion(), progress.say, quick=options.quick, threads=threads)
    found.flat |= half_billion_keys(paces)
    found.tables.append(half_billion_table(paces))
    return missing


def _diffusion_gemma(options: PeersOptions, progress: Progress, found: _Findings) -> list[str]:
    progress.say("DiffusionGemma's loop")
    times = measure_loop(QUICK_TURNS if options.quick else TURNS)
    found.flat |= loop_keys(times)
    found.tables.append(loop_table(times))
    return []


_PARTS: Final = {"holes": _holes, "half-billion": _half_billion, "diffusion-gemma": _diffusion_gemma}


def _trial(model: OpenModel, moments: Sequence[Moment], context: int, peer: Peer) -> float:
    """Milliseconds that `peer` takes for an answer, warm."""
    return fmean(times_of(measure(moments, [theirs(model, peer)], context, _Quiet()), peer.name))


class _Quiet(Progress):
    """Says nothing."""

    def say(self, sentence: str) -> None:
        """Nothing."""
