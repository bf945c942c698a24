"""Options that several commands share, and how their values are parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import typer

from calomel.cli.errors import InputError

if TYPE_CHECKING:
    from calomel.infer.completer import ModelInfo

_Made = TypeVar("_Made")


def _checked_device(name: str) -> str:
    """Raise InputError, with torch's reason, when torch cannot use the device. Imports torch for a GPU."""
    if name == "cpu":
        return name
    import torch

    try:
        torch.empty(0, device=name)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"--device {name} does not work here: {reason}. Without the option Calomel runs on the CPU"
        ) from error
    return name


def _found_folder(name: Path | None) -> Path | None:
    """The folder of a model. Raises InputError if there is none."""
    from calomel.weights.folders import ModelNameError, folder_of

    try:
        return folder_of(name)
    except ModelNameError as error:
        raise InputError(str(error)) from error


def word_or_number(option: str, words: Sequence[str], most: float, text: str) -> str | float:
    """One of the words, or a number from 0 to `most`. Raises InputError, naming the option."""
    if text in words:
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= most:
        raise InputError(f"{option} {text!r} is not {', '.join(words)} or a number up to {most:g}")
    return number


def model_info(folder: Path | None, upstream: str | None = None) -> ModelInfo:
    """The model in `folder` (None: the shipped one), from its files alone, or the one behind an address.

    Raises:
        InputError, OSError: there is none.
        CompleterError: the server does not answer.
    """
    if upstream is not None:
        from calomel.infer.upstream.completer import UpstreamCompleter
        from calomel.infer.upstream.exchange import Target

        found = UpstreamCompleter(Target.named(upstream))
        found.look()
        return found.model
    from calomel.infer.in_process import describe

    try:
        return describe(folder)
    except ValueError as error:
        raise InputError(str(error)) from error


def made_of(kind: type[_Made], given: Mapping[str, Any]) -> _Made:
    """A dataclass with those of the `given` values that it has; the others keep their defaults."""
    names = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    values = {name: value for name, value in given.items() if name in names and value not in (None, [])}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


_threshold = partial(word_or_number, "--aggressiveness", ("quiet", "balanced", "eager"), 1.0)

Model: TypeAlias = Annotated[
    Path | None,
    typer.Option(callback=_found_folder, help="A model's name, folder or GGUF file. Default: nano."),
]
Upstream: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Use the model of this server (see CALOMEL_UPSTREAM_MODEL and others)."),
]
Device: TypeAlias = Annotated[str, typer.Option(callback=_checked_device, help="cpu, cuda, cuda:N or mps.")]
Threads: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Processor threads.")]
Quantize: TypeAlias = Annotated[
    Literal["int8", "int4"] | None, typer.Option(help="Round weights to eight or four bits. Default: unchanged.")
]
Aggressiveness: TypeAlias = Annotated[
    # typer has no union of strings and numbers.
    Any,
    typer.Option(metavar="quiet|balanced|eager|P", parser=_threshold, help="How confident Calomel must be."),
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Random seed.")]
Resume: TypeAlias = Annotated[bool, typer.Option(help="Continue an interrupted run.")]
Config: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="Settings file. Default: calomel.toml in your configuration folder.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
