"""`calomel models`: the models on this machine, what they need, and how to get or to rewrite one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from calomel.cli.errors import InputError

if TYPE_CHECKING:
    from calomel.families.family import Family, Published, Quantization


models = typer.Typer(
    help="List, look at, estimate, convert and fetch models.", no_args_is_help=True, rich_markup_mode=None
)

_Name = Annotated[str, typer.Argument(help="A name of `calomel models list`, or a folder.")]
_MIB = 1024 * 1024


@models.command("list")
def list_() -> None:
    """Every model on this machine: the shipped one, those in the models folder, those in the hub's cache."""
    from calomel.server.model_folders import known, models_folder

    rows = [
        (model.name, f"{_bytes(model.path) / _MIB:.0f} MiB", _family_name(model.path), model.source)
        for model in known()
    ]
    width, wide = (max(len(row[column]) for row in rows) for column in (0, 2))
    for name, size, family, source in rows:
        print(f"{name:<{width}}  {size:>9}  {family:<{wide}}  {source}")
    print(f"\nModels folder: {models_folder()}")


@models.command()
def info(name: _Name) -> None:
    """What a model's files say of it."""
    from calomel.cli.fetch import read_source
    from calomel.suggest.launch import describe

    folder = _folder(name)
    try:
        told = describe(folder)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: {error}") from error
    print(f"folder     {folder}")
    print(f"family     {_family_name(folder)}")
    print(f"size       {_bytes(folder) / _MIB:.1f} MiB")
    print(f"answers    {', '.join(told.kinds)}")
    print(f"positions  {told.max_context}")
    print(f"weights    {told.weights}")
    source = read_source(folder)
    if source:
        print(f"from       {source}")
    if _family_name(folder) not in {"calomel", "unknown"}:
        _print_facts(_family(folder))


@models.command()
def estimate(
    name: Annotated[str, typer.Argument(help="A name of `calomel models list`, or a folder; config.json is enough.")],
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    dtype: Annotated[str | None, typer.Option(help="bfloat16, float16 or float32. Default: the device's.")] = None,
    cache_tokens: Annotated[
        int | None, typer.Option(min=16, help="Context tokens that stay encoded. Default: the server's.")
    ] = None,
    quantize: Annotated[str | None, typer.Option(help="int8 or fp8.")] = None,
) -> None:
    """The memory that a model takes, from its headers alone: nothing is loaded."""
    from calomel.engine import CheckpointError
    from calomel.families.family import OpenOptions
    from calomel.families.loading import dtype_of
    from calomel.families.memory import free_bytes, program_bytes
    from calomel.families.open import estimate_of

    folder = _folder(name, weights=False)
    if quantize not in {None, "int8", "fp8"}:
        raise InputError(f"--quantize is {quantize!r}; there are int8 and fp8")
    eight: Quantization | None = "int8" if quantize == "int8" else "fp8" if quantize == "fp8" else None
    options = OpenOptions(device=device, dtype=dtype, cache_tokens=cache_tokens, quantize=eight)
    try:
        numbers = dtype_of(dtype, device)
        found = estimate_of(folder, _family(folder), options)
    except CheckpointError as error:
        raise InputError(str(error)) from error
    kind = str(numbers).removeprefix("torch.")
    print(f"weights    {found.weights / _MIB:10.1f} MiB  ({quantize or kind})")
    print(f"contexts   {found.cache / _MIB:10.1f} MiB  ({options.cached} tokens stay encoded, {kind})")
    print(f"one step   {found.work / _MIB:10.1f} MiB")
    process = program_bytes(device, numbers)
    if process:
        print(f"program    {process / _MIB:10.1f} MiB")
    together = found.total + process
    print(f"together   {together / _MIB:10.1f} MiB")
    free = free_bytes(device)
    if free is not None:
        print(f"free now   {free / _MIB:10.1f} MiB  on {device}: {'fits' if together <= free else 'does not fit'}")


@models.command()
def convert(
    name: _Name,
    target: Annotated[Path, typer.Argument(help="The new folder; it must not be there.")],
    dtype: Annotated[str | None, typer.Option(help="bfloat16, float16 or float32. Default: as it is.")] = None,
    shard_gib: Annotated[float | None, typer.Option(min=0.001, help="Of a file at most. Default: one file.")] = None,
) -> None:
    """Write a model anew: its shards as one file, one file as shards, or its weights in another type."""
    from calomel.engine import CheckpointError
    from calomel.families.convert import convert as rewrite

    folder = _folder(name)
    most = None if shard_gib is None else int(shard_gib * 1024 * _MIB)
    try:
        written = rewrite(folder, target, dtype=dtype, shard_bytes=most)
    except CheckpointError as error:
        raise InputError(str(error)) from error
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


def _is_own(folder: Path) -> bool:
    """Whether a folder's config.json is of our own kind; asked first, since the families bring PyTorch."""
    import json

    try:
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "diffusion" in found


def _family_name(folder: Path) -> str:
    if _is_own(folder):
        return "calomel"
    from calomel.engine import CheckpointError
    from calomel.families.table import find

    try:
        return find(folder).name
    except CheckpointError:
        return "unknown"


def _family(folder: Path) -> Family:
    from calomel.engine import CheckpointError
    from calomel.families.table import find

    try:
        return find(folder)
    except CheckpointError as error:
        raise InputError(str(error)) from error


def _print_facts(family: Family) -> None:
    facts = family.facts
    print(f"attention  {facts.attention}")
    print(f"mask       {facts.mask}; {'shifted logits' if facts.shift else 'no shift'}")
    print(f"asked by   {family.prompts.fim} for holes, {family.prompts.edit} for regions")
    for checkpoint in facts.checkpoints:
        print(f"published  {checkpoint.name}, {checkpoint.licence}")
    print(f"compared   {facts.parity or 'with no reference yet'}")


def _folder(name: str, *, weights: bool = True) -> Path:
    from calomel.server.model_folders import ModelNameError, folder_of, is_model
    from calomel.weights import nano_path

    try:
        folder = folder_of(name) or nano_path()
    except ModelNameError as error:
        raise InputError(str(error)) from error
    if not is_model(folder) and (weights or not (folder / "config.json").is_file()):
        raise InputError(f"{folder} holds no model: config.json and weights as .safetensors are needed")
    return folder


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


_STATE: Final = (
    "| family | attention | asked for a hole, for an edit | loads | compared with a reference | run on a GPU | "
    "measured here | what is not there |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
)
_GUIDE: Final = (
    "| checkpoint | family | licence of its weights | weights in bfloat16 | in eight bits | published elsewhere |\n"
    "| --- | --- | --- | --- | --- | --- |\n"
)
_WAYS: Final = {
    "calomel": "our own format",
    "fim_tokens": "its fill-in-the-middle tokens",
    "around": "prefix and suffix as they are",
    "chat": "an instruction in its chat template",
}


def state_table(families: Iterable[Family]) -> str:
    """What loads, what was compared with a reference, what ran on a GPU, what was measured."""
    return _STATE + "".join(f"| {' | '.join(_state(family))} |\n" for family in families)


def guide_table(families: Iterable[Family]) -> str:
    """Every published checkpoint, the smallest first: licence, memory of its weights, figures of others."""
    rows = [(checkpoint, family) for family in families for checkpoint in family.facts.checkpoints]
    rows.sort(key=lambda row: (row[0].billions, row[0].name))
    return _GUIDE + "".join(f"| {' | '.join(_guide(*row))} |\n" for row in rows)


def _state(family: Family) -> Iterator[str]:
    facts, prompts = family.facts, family.prompts
    yield facts.title
    yield facts.attention
    ways = [_WAYS[prompts.fim], _WAYS[prompts.edit]]
    yield ways[0] if ways[0] == ways[1] else "; ".join(ways)
    yield "yes"
    yield f"yes (`{facts.parity}`)" if facts.parity else "no"
    yield facts.gpu or "no"
    yield facts.measured or "no"
    yield facts.limits


def _guide(checkpoint: Published, family: Family) -> Iterator[str]:
    yield checkpoint.name
    yield family.facts.title
    yield checkpoint.licence
    yield _size(checkpoint.billions * 2)
    yield _size(checkpoint.billions) if family.facts.eight_bits else "no"
    yield checkpoint.figures


def _size(gigabytes: float) -> str:
    return f"{gigabytes * 1000:.0f} MB" if gigabytes < 1 else f"{gigabytes:.1f} GB"
