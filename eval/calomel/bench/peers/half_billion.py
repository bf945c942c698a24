"""A random network of half a billion weights in three engines: speed alone, since it says nothing.

The sizes are those of Qwen2.5-0.5B in the layout of Qwen3, which all three read. A context is warm but for its last
token; an answer has `TOKENS`, and no engine may end it. Ours makes it by the shipped policy and left to right.
"""

from __future__ import annotations

import gc
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, Protocol

from calomel.bench.model import LEFT_TO_RIGHT
from calomel.bench.peers.fastest import Maker, Offer, llamacpp_makers, transformers_makers
from calomel.bench.peers.peer import Peer, PeerUnavailableError
from calomel.bench.report import Table, Value, number_cell
from calomel.suggest.filler import DEFAULT_CANVAS, DEFAULT_MAX_STEPS, DEFAULT_POLICY

if TYPE_CHECKING:
    from calomel.engine import AnyEngine, ModelConfig
    from calomel.engine.quantize import Quantization

CONTEXT, QUICK_CONTEXT = 512, 128
# One canvas of ours.
TOKENS: Final = DEFAULT_CANVAS
REPEATS, QUICK_REPEATS = 3, 1
# How our engine is opened; the first is its own choice.
OURS: Final[tuple[Quantization | None, ...]] = (None, "int8")
QUICK_OURS: Final[tuple[Quantization | None, ...]] = ("int8",)

Say = Callable[[str], None]


class Speaker(Protocol):
    """An engine that answers without end."""

    @property
    def settings(self) -> str:
        """Version, number type and threads, in words."""

    def answer(self, context: Sequence[int], count: int) -> int:
        """Make `count` tokens behind `context`; returns how many it made."""


@dataclass(frozen=True, slots=True)
class OurSpeaker:
    """Our engine with one policy."""

    engine: AnyEngine
    policy: str
    settings: str

    def answer(self, context: Sequence[int], count: int) -> int:
        """See `Speaker`."""
        from calomel.engine import Request

        request = Request(
            tuple(context),
            max_new_tokens=count,
            min_new_tokens=count,
            canvas_lengths=(DEFAULT_CANVAS,),
            policy=self.policy,
            max_steps=DEFAULT_MAX_STEPS,
            reuse=len(context),
        )
        return len(self.engine.submit(request).result().ids)


@dataclass(frozen=True, slots=True)
class TheirSpeaker:
    """A peer."""

    peer: Peer

    @property
    def settings(self) -> str:
        """See `Speaker`."""
        return self.peer.settings

    def answer(self, context: Sequence[int], count: int) -> int:
        """See `Speaker`."""
        return len(self.peer.decode(context, count, -1, lambda _: False))


@dataclass(frozen=True, slots=True)
class Pace:
    """Milliseconds for a token of an answer, and with what."""

    milliseconds: float
    settings: str


def half_a_billion() -> ModelConfig:
    """The sizes of Qwen2.5-0.5B; norms on queries and keys in place of biases."""
    from calomel.engine import DiffusionConfig, ModelConfig

    return ModelConfig(
        vocab_size=151_936,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=32_768,
        diffusion=DiffusionConfig(mask_token_id=151_935, end_token_id=151_934, verifiable=True),
    )


def write_random(config: ModelConfig, folder: Path) -> None:
    """A checkpoint of random weights."""
    import torch

    from calomel.engine import Transformer, save_checkpoint

    generator = torch.Generator().manual_seed(1)
    model = Transformer(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            # Uniform: normal numbers take several times as long, and nobody reads the answers.
            torch.nn.init.uniform_(parameter, -0.03, 0.03, generator=generator)
    save_checkpoint(model, folder)


def measure_half_billion(
    config: ModelConfig, say: Say, *, quick: bool = False, threads: int | None = None
) -> tuple[dict[str, Pace], list[str]]:
    """By engine, as it is fastest; and why others are not there."""
    paces: dict[str, Pace] = {}
    missing: list[str] = []
    count = threads or os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="calomel-half-billion-") as name:
        folder = Path(name) / "checkpoint"
        write_random(config, folder)
        context = QUICK_CONTEXT if quick else CONTEXT
        rng = random.Random(1)  # noqa: S311 - seeded, not secret
        prompts = [[rng.randrange(config.vocab_size - 2) for _ in range(context)]]
        prompts += [[*prompts[0][:-1], rng.randrange(config.vocab_size - 2)] for _ in range(REPEATS)]
        if quick:
            del prompts[1 + QUICK_REPEATS :]
        for quantize in QUICK_OURS if quick else OURS:
            with _our_engine(folder, quantize) as (engine, settings):
                for key, policy in (("ours", DEFAULT_POLICY), ("ours_left_to_right", LEFT_TO_RIGHT)):
                    _keep(paces, key, OurSpeaker(engine, policy, settings), prompts, say)
        offer = Offer(folder, context, (count,), quick)
        offers: tuple[tuple[str, Callable[[], list[Maker]]], ...] = (
            ("transformers", lambda: transformers_makers(offer)),
            ("llamacpp", lambda: llamacpp_makers(offer, Path(name))),
        )
        for key, makers in offers:
            try:
                for make in makers():
                    peer = make()
                    _keep(paces, key, TheirSpeaker(peer), prompts, say)
                    peer.close()
                    gc.collect()
            except PeerUnavailableError as error:
                missing.append(str(error))
    return paces, missing


def pace(
    speaker: Speaker,
    prompts: Sequence[Sequence[int]],
    tokens: int = TOKENS,
    clock: Callable[[], float] = time.perf_counter,
) -> Pace:
    """The median over `prompts` behind the first, which warms what they have in common."""
    speaker.answer(prompts[0], 1)
    took = []
    for prompt in prompts[1:]:
        began = clock()
        made = speaker.answer(prompt, tokens)
        took.append((clock() - began) * 1e3 / made)
    return Pace(median(took), speaker.settings)


def half_billion_keys(paces: dict[str, Pace]) -> dict[str, Value]:
    """Milliseconds for a token and settings of each, and ours over theirs."""
    flat: dict[str, Value] = {}
    for name, found in paces.items():
        flat[f"half_b_ms_per_token_{name}"] = found.milliseconds
        flat[f"half_b_settings_{name}"] = found.settings
    for name, found in paces.items():
        if name != "ours" and "ours" in paces:
            flat[f"half_b_vs_{name}"] = paces["ours"].milliseconds / found.milliseconds
    return flat


def half_billion_table(paces: dict[str, Pace]) -> Table:
    """A row for each engine."""
    rows = tuple(
        (name.replace("_", " "), number_cell(found.milliseconds, 1), found.settings) for name, found in paces.items()
    )
    return Table("Half a billion random weights", ("engine", "ms per token of an answer", "settings"), rows)


def _keep(paces: dict[str, Pace], key: str, speaker: Speaker, prompts: Sequence[Sequence[int]], say: Say) -> None:
    found = pace(speaker, prompts)
    say(f"{key}: {found.settings}: {found.milliseconds:.0f} ms a token")
    if key not in paces or found.milliseconds < paces[key].milliseconds:
        paces[key] = found


@contextmanager
def _our_engine(folder: Path, quantize: Quantization | None) -> Iterator[tuple[AnyEngine, str]]:
    from calomel.families.family import OpenOptions
    from calomel.families.open import open_engine

    engine = open_engine(folder, OpenOptions(quantize=quantize, cache_tokens=4096))[0]
    try:
        yield engine, quantize or "as it opens by itself"
    finally:
        engine.close()
        gc.collect()
