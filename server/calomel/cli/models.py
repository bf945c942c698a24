"""`calomel models`: the models on this machine, what they need, and how to get or to rewrite one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from calomel.cli.errors import InputError
from calomel.cli.options import Quantize
from calomel.cli.output import columns, markdown

if TYPE_CHECKING:
    from calomel.families.family import Family, Published


models = typer.Typer(
    help="List, look at, estimate, convert and fetch models.", no_args_is_help=True, rich_markup_mode=None
)

_Name = Annotated[str, typer.Argument(help="A name of `calomel models list`, or a folder.")]
_Number = Annotated[
    Literal["bfloat16", "float16", "float32"] | None, typer.Option(help="Default: the device's, or as it is.")
]
_MIB = 1024 * 1024


@models.command("list")
def list_() -> None:
    """Every model on this machine: the shipped one, those in the models folder, those in the hub's cache."""
    from calomel.server.model_folders import known, models_folder

    print(columns((each.name, _size_of(each.path), _family_name(each.path), each.source) for each in known()))
    print(f"\nModels folder: {models_folder()}")


@models.command()
def info(name: _Name) -> None:
    """What a model's files say of it."""
    from calomel.cli.fetch import read_source
    from calomel.suggest.launch import describe

    folder = _folder(name)
    try:
        told = describe(folder)
    except ValueError as error:
        raise InputError(f"{folder}: {error}") from error
    family = _family_name(folder)
    rows = [
        ("folder", str(folder)),
        ("family", family),
        ("size", _size_of(folder)),
        ("answers", ", ".join(told.kinds)),
        ("positions", str(told.max_context)),
        ("weights", told.weights),
    ]
    source = read_source(folder)
    if source:
        rows.append(("from", source))
    if family not in {"calomel", "unknown"}:
        from calomel.families.table import find

        known = find(folder)
        facts = known.facts
        rows += [
            ("attention", facts.attention),
            ("mask", f"{facts.mask}; {'shifted logits' if facts.shift else 'no shift'}"),
            ("asked by", f"{known.prompts.fim} for holes, {known.prompts.edit} for regions"),
            *(("published", f"{each.name}, {each.licence}") for each in facts.checkpoints),
            ("compared", facts.parity or "with no reference yet"),
        ]
    print(columns(rows))


@models.command()
def estimate(
    name: Annotated[str, typer.Argument(help="A name of `calomel models list`, or a folder; config.json is enough.")],
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    dtype: _Number = None,
    cache_tokens: Annotated[
        int | None, typer.Option(min=16, help="Context tokens that stay encoded. Default: the server's.")
    ] = None,
    quantize: Quantize = None,
) -> None:
    """The memory that a model takes, from its headers alone: nothing is loaded."""
    from calomel.families.family import OpenOptions
    from calomel.families.loading import dtype_of
    from calomel.families.memory import free_bytes, program_bytes
    from calomel.families.open import estimate_of
    from calomel.families.table import find

    folder = _folder(name, weights=False)
    options = OpenOptions(device=device, dtype=dtype, cache_tokens=cache_tokens, quantize=quantize)
    numbers = dtype_of(dtype, device)
    found = estimate_of(folder, find(folder), options)
    process, free = program_bytes(device, numbers), free_bytes(device)
    together = found.total + process
    kind = str(numbers).removeprefix("torch.")
    rows = [
        ("weights", found.weights, f"({quantize or kind})"),
        ("contexts", found.cache, f"({options.cached} tokens stay encoded, {kind})"),
        ("one step", found.work, ""),
        *([("program", process, "")] if process else []),
        ("together", together, ""),
    ]
    if free is not None:
        rows.append(("free now", free, f"on {device}: {'fits' if together <= free else 'does not fit'}"))
    print(columns((name, f"{size / _MIB:.1f} MiB", more) for name, size, more in rows))


@models.command()
def convert(
    name: _Name,
    target: Annotated[Path, typer.Argument(help="The new folder; it must not be there.")],
    dtype: _Number = None,
    shard_gib: Annotated[float | None, typer.Option(min=0.001, help="Of a file at most. Default: one file.")] = None,
) -> None:
    """Write a model anew: its shards as one file, one file as shards, or its weights in another type."""
    from calomel.families.convert import convert as rewrite

    most = None if shard_gib is None else int(shard_gib * 1024 * _MIB)
    written = rewrite(_folder(name), target, dtype=dtype, shard_bytes=most)
    told = f"{written.rounded} tensors in another type" if written.rounded else "nothing is lost"
    print(f"{target}: {len(written.files)} files of weights, {written.bytes / _MIB:.1f} MiB; {told}")


@models.command()
def families(
    guide: Annotated[bool, typer.Option(help="Their published checkpoints, by size, instead.")] = False,
) -> None:
    """What kinds of checkpoint load, and what is known of each, as a table of Markdown."""
    from calomel.families.table import FAMILIES

    print(guide_table(FAMILIES) if guide else state_table(FAMILIES), end="")


@models.command()
def path(name: _Name) -> None:
    """A model's folder."""
    print(_folder(name))


@models.command()
def fetch(
    repository: Annotated[str, typer.Argument(metavar="REPO[@REVISION]", help="Of a hub, as owner/name.")],
    name: Annotated[str | None, typer.Option(help="For the models folder. Default: owner--name.")] = None,
) -> None:
    """Fetch a model from a hub into the models folder: weights as safetensors and configuration, never code.

    Without a revision, the newest one is taken and written down. This is the one command that downloads a model.
    """
    from calomel.cli.fetch import fetch as get

    repo, _, revision = repository.partition("@")
    found = get(repo, revision or None, name)
    print(f"{found.path} (revision {found.revision})")
    print(f"calomel serve --model {found.path.name}")


def _family_name(folder: Path) -> str:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = None
    # Our own kind is known without the families, which bring PyTorch.
    if isinstance(config, dict) and "diffusion" in config:
        return "calomel"
    from calomel.engine import CheckpointError
    from calomel.families.table import find

    try:
        return find(folder).name
    except CheckpointError:
        return "unknown"


def _folder(name: str, *, weights: bool = True) -> Path:
    from calomel.server.model_folders import folder_of, is_model
    from calomel.weights import nano_path

    folder = folder_of(name) or nano_path()
    if not is_model(folder) and (weights or not (folder / "config.json").is_file()):
        raise InputError(f"{folder} holds no model: config.json and weights as .safetensors are needed")
    return folder


def _size_of(folder: Path) -> str:
    return f"{sum(file.stat().st_size for file in folder.glob('*.safetensors')) / _MIB:.0f} MiB"


_STATE: Final = (
    "family", "attention", "asked for a hole, for an edit", "loads", "compared with a reference", "run on a GPU",
    "measured here", "what is not there",
)  # fmt: skip
_GUIDE: Final = (
    "checkpoint", "family", "licence of its weights", "weights in bfloat16", "in eight bits", "published elsewhere",
)  # fmt: skip
_WAYS: Final = {
    "calomel": "our own format",
    "fim_tokens": "its fill-in-the-middle tokens",
    "around": "prefix and suffix as they are",
    "chat": "an instruction in its chat template",
}


def state_table(families: Iterable[Family]) -> str:
    """What loads, what was compared with a reference, what ran on a GPU, what was measured."""
    return markdown(_STATE, map(_state, families))


def guide_table(families: Iterable[Family]) -> str:
    """Every published checkpoint, the smallest first: licence, memory of its weights, figures of others."""
    rows = [(checkpoint, family) for family in families for checkpoint in family.facts.checkpoints]
    rows.sort(key=lambda row: (row[0].billions, row[0].name))
    return markdown(_GUIDE, (_guide(*row) for row in rows))


def _state(family: Family) -> tuple[str, ...]:
    facts = family.facts
    ways = "; ".join(dict.fromkeys((_WAYS[family.prompts.fim], _WAYS[family.prompts.edit])))
    compared = f"yes (`{facts.parity}`)" if facts.parity else "no"
    return facts.title, facts.attention, ways, "yes", compared, facts.gpu or "no", facts.measured or "no", facts.limits


def _guide(checkpoint: Published, family: Family) -> tuple[str, ...]:
    eight = _gigabytes(checkpoint.billions) if family.facts.eight_bits else "no"
    sizes = _gigabytes(checkpoint.billions * 2), eight
    return checkpoint.name, family.facts.title, checkpoint.licence, *sizes, checkpoint.figures


def _gigabytes(size: float) -> str:
    return f"{size * 1000:.0f} MB" if size < 1 else f"{size:.1f} GB"
