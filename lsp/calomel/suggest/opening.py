"""A checkpoint folder of any family, ready to fill holes and to rewrite regions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from calomel.suggest.filler import Filler
from calomel.suggest.manner import Manner
from calomel.suggest.recall_worth import RecallWorth, RecallWorthError, read_worth
from calomel.suggest.recalling import RecallingFiller

if TYPE_CHECKING:
    from calomel.engine import AnyEngine
    from calomel.engine.config import Shape
    from calomel.families.family import OpenOptions
    from calomel.prompts.text_tokenizer import TextTokenizer
    from calomel.suggest.upstream.target import Upstream


def open_folder(
    folder: Path, options: OpenOptions, upstream: Upstream | None = None, replicas: int | None = None
) -> Filler:
    """Load the checkpoint in `folder` and start an engine for it.

    With `upstream`, or with `replicas`, no weights are read here: that is asked, or so many processes are started.

    Raises:
        CheckpointError, TokenizerError: the folder is incomplete, of no known family, or too large for this device.
        UpstreamError: the upstream cannot be used.
        ReplicasError: the replicas cannot be started.
    """
    from calomel.engine import SamplingParams  # these import torch
    from calomel.families.generation import generation_of
    from calomel.families.table import find, read_config

    family = find(folder)
    raw = read_config(folder)
    if family.prompts.fim == "calomel":
        from calomel.prompts.tokenizer import Tokenizer

        own = Tokenizer.from_file(folder / "tokenizer.json")
        shape, worth = family.config(raw, folder), _worth(folder)
        engine = _engine(folder, options, (upstream, replicas), shape, own, ())
        filler = Filler(engine, own) if worth is None else RecallingFiller(engine, own, worth)
        filler.constrains = upstream is None
        return filler
    from calomel.prompts.styles.choose import open_published  # jinja2 takes its time

    shape = family.config(raw, folder)
    diffusion = shape.diffusion
    generation = generation_of(family, raw, folder)
    # Before the weights: what is wrong with the small files is known at once.
    published = open_published(folder, family.prompts, end=diffusion.end_token_id, mask=diffusion.mask_token_id)
    sampling = SamplingParams(temperature=generation.temperature, top_p=generation.top_p, top_k=generation.top_k)
    steps = generation.max_steps
    fill = Manner(published.fill, generation.policy, steps, generation.fill_canvases, sampling, published.fill.ended)
    edits = Manner(published.edit, generation.policy, steps, (generation.edit_canvas,), sampling, published.edit.ended)
    control = published.tokenizer.control
    ends = [control[name] for name in family.prompts.ends if name in control]
    engine = _engine(folder, options, (upstream, replicas), shape, published.tokenizer, ends)
    return Filler(engine, published.tokenizer, fill, edits)


def _worth(folder: Path) -> RecallWorth | None:
    from calomel.engine import CheckpointError

    try:
        return read_worth(folder)
    except RecallWorthError as error:
        raise CheckpointError(str(error)) from error


def _engine(
    folder: Path,
    options: OpenOptions,
    elsewhere: tuple[Upstream | None, int | None],
    shape: Shape,
    tokenizer: TextTokenizer,
    ends: Sequence[int],
) -> AnyEngine:
    upstream, replicas = elsewhere
    if replicas is not None:
        from calomel.suggest.replicas.opening import open_replicas

        return open_replicas(folder, options, shape, replicas)
    if upstream is None:
        from calomel.families.open import open_engine

        return open_engine(folder, options)[0]
    from calomel.suggest.upstream.engine import UpstreamEngine
    from calomel.suggest.upstream.shape import UpstreamShape

    return UpstreamEngine(upstream, UpstreamShape.of(shape, folder.name), tokenizer, ends)
