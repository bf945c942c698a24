"""What the dual cache of window mode brings and costs: the same holes with it and by whole forwards.

On the shipped weights, read in both directions. They were not trained for that, so no figure here is about quality:
time is that of a network of this shape, and the share of equal tokens says how far the cache drifts from the exact way.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from calomel.bench.machine import describe_run
from calomel.bench.report import Report, Table, Value
from calomel.weights import nano_path

if TYPE_CHECKING:
    from calomel.engine import Result, Transformer

WINDOWS: Final = (256, 1024)
CANVAS: Final = 32
# Tokens a step: one as published, and four as whoever is in a hurry takes.
STEPS: Final = (32, 8)


@dataclass(frozen=True, slots=True)
class WindowBenchOptions:
    """What is measured.

    Attributes:
        windows: tokens of prefix, canvas and suffix together.
        steps: denoising steps of a canvas.
        holes: for each window.
        seed: decides where they are.
        threads: of the engine; None for PyTorch's own choice.
        device: where it runs.
    """

    windows: Sequence[int] = WINDOWS
    steps: Sequence[int] = STEPS
    holes: int = 2
    seed: int = 1
    threads: int | None = None
    device: str = "cpu"


def run_window(options: WindowBenchOptions) -> Report:
    """Measure both ways for each window, number of steps and kind of logits."""
    from calomel.prompts.tokenizer import Tokenizer

    provenance = describe_run()
    folder = nano_path()
    text = Path(argparse.__file__).read_text(encoding="utf-8")
    ids = Tokenizer.from_file(folder / "tokenizer.json").encode(text)
    rows: list[tuple[str, ...]] = []
    flat: dict[str, Value] = {}
    for shift, policy in ((False, "low_confidence"), (True, "entropy")):
        model = _model(folder, options.device, shift=shift)
        for window in options.windows:
            holes = list(_holes(ids, window, options))
            for steps in options.steps:
                exact, dual = (_answers(model, holes, policy, steps, options, dual=dual) for dual in (False, True))
                ms = [1000 * statistics.median(seconds for _, seconds in answers) for answers in (exact, dual)]
                equal = statistics.mean(_equal(one, other) for (one, _), (other, _) in zip(exact, dual, strict=True))
                name = f"{policy}_{window}_{steps}"
                flat |= {f"{name}_exact_ms": ms[0], f"{name}_dual_ms": ms[1], f"{name}_equal": equal}
                told = (f"{ms[0]:.0f}", f"{ms[1]:.0f}", f"{ms[0] / ms[1]:.1f}", f"{100 * equal:.0f} %")
                rows.append((policy, str(window), str(steps), *told))
    columns = ("policy", "window", "steps", "exact ms", "dual cache ms", "times as fast", "equal tokens")
    notes = (
        f"Median of {options.holes} holes of {CANVAS} tokens, one request at a time, one block.",
        "The network is the shipped one read in both directions, which it never learned: nothing here is quality.",
    )
    table = Table("The dual cache beside whole forwards", columns, tuple(rows))
    return Report("bench window", flat, (table,), notes, provenance)


def _model(folder: Path, device: str, *, shift: bool) -> Transformer:
    import torch

    from calomel.engine import DiffusionConfig, load_checkpoint

    model = load_checkpoint(folder, dtype=torch.float32, device=device)
    known = model.config.diffusion
    diffusion = DiffusionConfig(
        known.mask_token_id, known.end_token_id, logit_shift=shift, verifiable=False, reads_suffix=True
    )
    model.config = replace(model.config, diffusion=diffusion)
    return model


def _holes(
    ids: Sequence[int], window: int, options: WindowBenchOptions
) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Prefix and suffix of every hole; the hole is in the middle of its window."""
    chance = random.Random(options.seed)  # noqa: S311  (holes, no secrets)
    before = (window - CANVAS) // 2
    for _ in range(options.holes):
        start = chance.randrange(len(ids) - window)
        yield ids[start : start + before], ids[start + before + CANVAS : start + window]


def _answers(
    model: Transformer,
    holes: Sequence[tuple[Sequence[int], Sequence[int]]],
    policy: str,
    steps: int,
    options: WindowBenchOptions,
    *,
    dual: bool,
) -> list[tuple[Result, float]]:
    from calomel.engine import Request
    from calomel.engine.window import WindowEngine, WindowOptions

    window = WindowOptions(block=CANVAS, dual_cache=dual)
    found = []
    with WindowEngine(model, window, device=options.device, threads=options.threads) as engine:
        for prefix, suffix in holes:
            request = Request(
                context=tuple(prefix),
                suffix=tuple(suffix),
                canvas_lengths=(CANVAS,),
                max_new_tokens=CANVAS,
                min_new_tokens=CANVAS,
                policy=policy,
                max_steps=steps,
            )
            began = time.perf_counter()
            result = engine.submit(request).result()
            found.append((result, time.perf_counter() - began))
    return found


def _equal(one: Result, other: Result) -> float:
    return statistics.mean(a == b for a, b in zip(one.ids, other.ids, strict=True))
