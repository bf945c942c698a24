"""A model in a folder: described from its files, and opened in this process behind the interface of a remote one."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from calomel.engine import CheckpointError, DeadlineExceededError, EngineError, SamplingParams
from calomel.engine.errors import CacheFullError, InvalidRequestError
from calomel.infer.completer import (
    DEFAULT_CONTEXT,
    SHIPPED_ID,
    Answerer,
    Complete,
    CompleteAnswer,
    CompleteRequest,
    CompleterError,
    GenerationConfig,
    Kind,
    ModelInfo,
    version,
)
from calomel.infer.filler import Filler
from calomel.infer.recall import CopyScorer
from calomel.infer.wire import FieldError, check_request
from calomel.prompts.parts import RegionBounds
from calomel.selectivity.record import SourceClass
from calomel.storage import read_object
from calomel.weights import nano_path, weights_id

if TYPE_CHECKING:
    from calomel.engine import Work
    from calomel.engine.config import ModelConfig
    from calomel.families.family import OpenOptions
    from calomel.prompts.tokenizer import TextTokenizer


def open_filler(
    model: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    *,
    cache_tokens: int | None = None,
    dtype: str | None = None,
    quantize: Literal["int8"] | None = None,
) -> Filler:
    """Load the checkpoint folder `model` (None: the embedded one), of any family, and start an engine for it.

    Args:
        model: checkpoint folder.
        device: `cpu`, `cuda`, `cuda:N` or `mps`.
        threads: of the engine; None for its own choice.
        cache_tokens: size of the prefix cache; None for the device's usual size, or for what fits.
        dtype: of weights and cache, such as `float32`; None for what the device computes fastest.
        quantize: weights to eight bits; None keeps `dtype`.

    Raises:
        CheckpointError, TokenizerError: the folder is incomplete, of no known family, or too large for this device; the
            message says which.
    """
    from calomel.families.family import OpenOptions  # imports torch

    options = OpenOptions(
        device=device,
        dtype=dtype,
        threads=threads,
        cache_tokens=cache_tokens,
        quantize=quantize,
    )
    return open_folder(model or nano_path(), options)


def open_folder(folder: Path, options: OpenOptions) -> Filler:
    """Load the checkpoint in `folder` and start an engine for it.

    Raises:
        CheckpointError, TokenizerError: the folder is incomplete, of no known family, or too large for this device.
    """
    from calomel.families.configuration import read_config
    from calomel.families.generation import generation_of
    from calomel.families.plan import open_engine
    from calomel.families.table import find

    family = find(folder)
    raw = read_config(folder)
    if family.prompts.fim == "calomel":
        from calomel.prompts.tokenizer import Tokenizer

        own = Tokenizer.from_file(folder / "tokenizer.json")
        shape, copies = family.config(raw, folder), CopyScorer.read(folder)
        _check_tokens(folder, own, shape)
        engine, _ = open_engine(folder, options)
        return Filler(engine, own, copies=copies)
    from calomel.prompts.published import open_published  # imports jinja2, which is slow

    shape = family.config(raw, folder)
    diffusion = shape.diffusion
    generation = generation_of(family, raw, folder)
    # Before the weights, so that errors in the small files are found at once.
    published = open_published(folder, family.prompts, end=diffusion.end_token_id, mask=diffusion.mask_token_id)
    _check_tokens(folder, published.tokenizer, shape)
    sampling = SamplingParams(temperature=generation.temperature, top_p=generation.top_p, top_k=generation.top_k)
    steps = generation.max_steps
    fill = GenerationConfig(
        published.fill,
        generation.policy,
        steps,
        generation.fill_canvas,
        sampling,
        published.fill.ended,
        continues=published.continues,
    )
    edits = GenerationConfig(
        published.edit,
        generation.policy,
        steps,
        generation.edit_canvas,
        sampling,
        published.edit.ended,
        blind=published.blind,
    )
    return Filler(open_engine(folder, options)[0], published.tokenizer, fill, edits)


def _check_tokens(folder: Path, tokenizer: TextTokenizer, shape: ModelConfig) -> None:
    """Raise CheckpointError if tokenizer and `config.json` cannot be of the same checkpoint."""
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
    for name, has, phrase, fits in rules:
        if not fits:
            raise CheckpointError(
                f"{name} in config.json of {folder} is {phrase}, but its tokenizer has {has}: they belong to different "
                "checkpoints; fetch both again"
            )


_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_BOUNDS: Final = tuple(entry.name for entry in fields(RegionBounds))


def describe(folder: Path | None) -> ModelInfo:
    """The model in `folder` (None: the shipped one), described from its files only.

    For our own models, `config.json` says under `kinds` what they were trained for (by default only filling holes), and
    under `edit_region` how much they may rewrite at once. Others are described by their family.

    Raises:
        OSError, ValueError: the folder has no readable `config.json`, or one of no known family.
    """
    place = folder or nano_path()
    # Says by its error that there is none.
    (place / "config.json").stat()
    config = read_object(place / "config.json", ValueError)
    own = "diffusion" in config or not config.keys() & {"model_type", "architectures"}
    positions, region, source = _made_here(config) if own else _published(place)
    if not isinstance(positions, int):
        message = f"{place / 'config.json'} has no max_position_embeddings"
        raise ValueError(message)  # noqa: TRY004 (the file is wrong, not a caller's type)
    return ModelInfo(
        id=SHIPPED_ID if folder is None else folder.resolve().name,
        weights=weights_id(place),
        kinds=_kinds(config) if own else _KINDS,
        max_context=positions,
        default_context=min(DEFAULT_CONTEXT, positions),
        # Reading another maker's tokenizer needs facts about its family, which clients that count tokens lack.
        tokenizer=os.path.realpath(place / "tokenizer.json") if own else None,
        version=version(),
        region=region,
        source=source,
    )


def _made_here(config: dict[str, Any]) -> tuple[object, RegionBounds, SourceClass]:
    return config.get("max_position_embeddings"), _region(config), "small"


def _published(folder: Path) -> tuple[object, RegionBounds, SourceClass]:
    """Positions, region and class of another maker's checkpoint. Raises ValueError if its family or files are wrong."""
    from calomel.families.configuration import read_config
    from calomel.families.table import find
    from calomel.prompts.next_edit import EDIT_FORMATS

    try:
        family = find(folder)
        form = EDIT_FORMATS.get(family.prompts.edit)
        positions = family.config(read_config(folder), folder).max_position_embeddings
    except CheckpointError as error:
        raise ValueError(str(error)) from error
    return positions, RegionBounds() if form is None else form.region, "fim" if form is None else "edits"


def _kinds(config: dict[str, Any]) -> tuple[Kind, ...]:
    names = config.get("kinds")
    return tuple(kind for kind in _KINDS if kind in names) if isinstance(names, list) else ("fill",)


def _region(config: dict[str, Any]) -> RegionBounds:
    bounds = config.get("edit_region")
    if not isinstance(bounds, dict):
        return RegionBounds()
    values = {name: bounds[name] for name in _BOUNDS if isinstance(bounds.get(name), int)}
    return RegionBounds(**values)


NOT_TRAINED_FOR_EDITS = "not_trained_for_edits"


async def answer(complete: Complete, info: ModelInfo, request: CompleteRequest) -> CompleteAnswer:
    """The answer of the model that `complete` asks, which is `info`, to `request`.

    Raises:
        EngineError: the engine refused or failed.
    """
    if request.kind not in info.kinds:
        return CompleteAnswer((), reason=NOT_TRAINED_FOR_EDITS, model=info.id)
    return replace(await complete(request), model=info.id)


@dataclass(slots=True)
class EngineCompleter:
    """A `Completer` on an engine in this process, for replay and tests.

    Attributes:
        filler: closed with this object.
        model: its description.
    """

    filler: Answerer
    model: ModelInfo
    address: None = None

    @property
    def work(self) -> Work | None:
        """What the engine has done so far; None without one in this process."""
        return self.filler.engine.work if isinstance(self.filler, Filler) else None

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises CompleterError."""
        try:
            check_request(request)
            return await answer(self.filler.complete, self.model, request)
        except FieldError as error:
            raise CompleterError("refused", str(error)) from None
        except EngineError as error:
            raise CompleterError(_code(error), f"the engine reported: {error.code}") from error

    async def info(self) -> ModelInfo:
        """What the model can do."""
        return self.model

    async def aclose(self) -> None:
        """Stop the engine."""
        self.filler.close()


def open_completer(folder: Path | None = None, device: str = "cpu", threads: int | None = None) -> EngineCompleter:
    """Load the checkpoint folder (None: the shipped one) and answer with it; blocks for seconds.

    Raises what `open_filler` raises.
    """
    filler = open_filler(folder, device, threads)
    return EngineCompleter(filler, describe(folder))


def _code(error: EngineError) -> str:
    if isinstance(error, InvalidRequestError):
        return "refused"
    if isinstance(error, CacheFullError):
        return "overloaded"
    return "timeout" if isinstance(error, DeadlineExceededError) else "failed"
