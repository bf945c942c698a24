"""A checkpoint folder of any family, ready to fill holes and to rewrite regions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from calomel.suggest.filler import Filler
from calomel.suggest.manner import Manner
from calomel.suggest.recall_worth import RecallWorth, RecallWorthError, read_worth
from calomel.suggest.recalling import RecallingFiller

if TYPE_CHECKING:
    from calomel.engine import AnyEngine
    from calomel.engine.config import Shape
    from calomel.engine.quantize import Quantization
    from calomel.families.family import OpenOptions
    from calomel.prompts.tokenizer import TextTokenizer


def open_filler(  # noqa: PLR0913  (one parameter per setting of the server)
    model: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    *,
    cache_tokens: int | None = None,
    spare_tokens: int | None = None,
    dtype: str | None = None,
    quantize: Quantization | None = None,
    exact: bool = False,
    replicas: int | None = None,
) -> Filler:
    """Load the checkpoint folder `model` (None: the embedded one), of any family, and start an engine for it.

    Args:
        model: checkpoint folder.
        device: `cpu`, `cuda` or `cuda:N`.
        threads: of the engine; None for its own choice.
        cache_tokens: of contexts that stay encoded; None for the device's usual number, or for what fits.
        spare_tokens: of contexts being served, or laid out for their next keystroke; None for as many.
        dtype: of weights and cache, such as `float32`; None for what the device computes fastest.
        quantize: weights in eight bits, `int8` or `fp8`; None for `dtype`.
        exact: whole forwards at every step, where a family has a faster way that is nearly as good.
        replicas: processes with an engine each, the other settings for each of them; None for an engine in this one.

    Raises:
        CheckpointError, TokenizerError: the folder is incomplete, of no known family, or too large for this device; the
            message names what.
        ReplicasError: the replicas cannot be started.
    """
    from calomel.families.family import OpenOptions  # imports torch
    from calomel.weights import nano_path

    options = OpenOptions(
        device=device,
        dtype=dtype,
        threads=threads,
        cache_tokens=cache_tokens,
        spare_tokens=spare_tokens,
        quantize=quantize,
        exact=exact,
    )
    return open_folder(model or nano_path(), options, replicas)


def open_folder(folder: Path, options: OpenOptions, replicas: int | None = None) -> Filler:
    """Load the checkpoint in `folder` and start an engine for it.

    With `replicas` no weights are read here: so many processes are started.

    Raises:
        CheckpointError, TokenizerError: the folder is incomplete, of no known family, or too large for this device.
        ReplicasError: the replicas cannot be started.
    """
    from calomel.engine import SamplingParams  # these import torch
    from calomel.families.configuration import read_config
    from calomel.families.generation import generation_of
    from calomel.families.table import find

    family = find(folder)
    raw = read_config(folder)
    if family.prompts.fim == "calomel":
        from calomel.prompts.tokenizer import Tokenizer

        own = Tokenizer.from_file(folder / "tokenizer.json")
        shape, worth = family.config(raw, folder), _worth(folder)
        _check_tokens(folder, own, shape)
        engine = _engine(folder, options, shape, replicas)
        return Filler(engine, own) if worth is None else RecallingFiller(engine, own, worth)
    from calomel.prompts.published import open_published  # jinja2 takes its time

    shape = family.config(raw, folder)
    diffusion = shape.diffusion
    generation = generation_of(family, raw, folder)
    # Before the weights: what is wrong with the small files is known at once.
    published = open_published(folder, family.prompts, end=diffusion.end_token_id, mask=diffusion.mask_token_id)
    _check_tokens(folder, published.tokenizer, shape)
    sampling = SamplingParams(temperature=generation.temperature, top_p=generation.top_p, top_k=generation.top_k)
    steps = generation.max_steps
    fill = Manner(published.fill, generation.policy, steps, generation.fill_canvases, sampling, published.fill.ended)
    edits = Manner(published.edit, generation.policy, steps, (generation.edit_canvas,), sampling, published.edit.ended)
    return Filler(_engine(folder, options, shape, replicas), published.tokenizer, fill, edits)


def _check_tokens(folder: Path, tokenizer: TextTokenizer, shape: Shape) -> None:
    """Raise CheckpointError where tokenizer and `config.json` cannot be of one checkpoint."""
    from calomel.engine import CheckpointError

    rules = (
        ("vocab_size", tokenizer.size, shape.vocab_size, tokenizer.size <= shape.vocab_size),
        ("end_token_id", tokenizer.end, shape.diffusion.end_token_id, tokenizer.end == shape.diffusion.end_token_id),
        (
            "mask_token_id",
            tokenizer.mask,
            shape.diffusion.mask_token_id,
            tokenizer.mask == shape.diffusion.mask_token_id,
        ),
    )
    for name, has, said, fits in rules:
        if not fits:
            raise CheckpointError(
                f"config.json in {folder} says {name} {said}, and its tokenizer has {has}: they are not of one "
                "checkpoint; fetch both anew"
            )


def _worth(folder: Path) -> RecallWorth | None:
    from calomel.engine import CheckpointError

    try:
        return read_worth(folder)
    except RecallWorthError as error:
        raise CheckpointError(str(error)) from error


def _engine(folder: Path, options: OpenOptions, shape: Shape, replicas: int | None) -> AnyEngine:
    if replicas is not None:
        from calomel.suggest.replicas.opening import open_replicas

        return open_replicas(folder, options, shape, replicas)
    from calomel.families.open import open_engine

    return open_engine(folder, options)[0]
