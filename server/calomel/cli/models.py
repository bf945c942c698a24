"""`calomel models`: the models on this machine, what they need, and how to get one."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from calomel.cli.hub import SOURCE_FILE, fetch_gguf
from calomel.cli.output import (
    CommandError,
    InputError,
    Quantize,
    TableForm,
    address,
    columns,
    markdown,
    model_info,
    plural,
    say,
    table_form,
    visible,
)
from calomel.cli.recommend import recommend
from calomel.families.facts import FamilyFacts, Published, family_facts
from calomel.storage import read_object
from calomel.weights import gguf_in

if TYPE_CHECKING:
    from calomel.families.family import Family


models = typer.Typer(
    help="List, choose, inspect, plan, fetch and remove models.", no_args_is_help=True, rich_markup_mode=None
)


def _names(incomplete: str) -> list[str]:
    """The models of this machine, for a shell that completes."""
    from calomel.weights.folders import known, of_others

    return [each.name for each in (*known(), *of_others()) if each.name.startswith(incomplete)]


def _fetched_names(incomplete: str) -> list[str]:
    """Those that `calomel models fetch` brought."""
    from calomel.weights.folders import known

    there = (each for each in known() if (each.path / SOURCE_FILE).is_file())
    return [each.name for each in there if each.name.startswith(incomplete)]


_Name = Annotated[
    str, typer.Argument(help="Name from `calomel models list`, folder or GGUF file.", autocompletion=_names)
]
_Number = Annotated[
    Literal["bfloat16", "float16", "float32"] | None,
    typer.Option(help="Number format to plan for. Default: the device's."),
]
_Chosen = Annotated[
    Literal["cpu", "cuda", "mps"] | None,
    typer.Option("--device", help="Write where the model runs, too. Default: leave that setting."),
]
_Edits = Annotated[bool, typer.Option("--edits", help="Only for next edits; completions keep their model.")]
_MIB: Final = 1024 * 1024
_MOST_GIB: Final = 1_000_000.0
_GIB: Final = 1024 * _MIB


@models.command("list")
def list_() -> None:
    """List the models on this machine.

    It shows the shipped one, the models folder, the hub's cache, and the GGUF files of Ollama and LM Studio, with what
    would run each. A * marks the choice for all editors.
    """
    from calomel.cli import choice
    from calomel.cli.editor import here
    from calomel.server.settings import load
    from calomel.weights.folders import known, models_folder, of_others

    now = choice.choice()
    rows: list[tuple[str, ...]] = []
    for each in (*known(), *of_others()):
        kind = _family_name(each.path)
        mark = "*" * choice.is_of(now, each)
        mark += "e" * (now.for_edits is not None and choice.is_of(now.for_edits, each))
        rows.append((mark, each.name, _size_of(each.path), kind, choice.runs_in(each.path, kind), each.source))
    for mark, server in (("*", now.for_text), ("e", now.for_edits)):
        if server is not None and not any(mark in marks for marks, *_ in rows):
            name = choice.described(server)
            packed = None if server.model is None else gguf_in(Path(name))
            told = ("", "", "") if packed is None else (_size_of(packed), "GGUF", choice.runs_in(packed, "GGUF"))
            rows.append((mark, name, *told, "chosen in calomel.toml"))
    say(columns(rows))
    say("\n*: asked by all editors, and by commands without --model; `calomel serve` has settings of its own.")
    if now.for_edits is not None:
        say("e: asked by editors for next edits.")
    say(f"Models folder: {models_folder()}")
    for own in choice.own_choices(here(load({}).settings)):
        say(own.told)


@models.command()
def use(
    name: Annotated[
        str | None,
        typer.Argument(help="Name from `calomel models list`, folder or GGUF file.", autocompletion=_names),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            metavar="URL", callback=address, help="Use the model of this server; NAME is its name there, if any."
        ),
    ] = None,
    upstream_key_file: Annotated[Path | None, typer.Option(help="File with the key of that server.")] = None,
    device: _Chosen = None,
    edits: _Edits = False,
) -> None:
    """Choose the model for all editors, and for `calomel try`, `fill`, `replay` and `calibrate`.

    It writes the choice under [backend] in your own calomel.toml, and names the editors whose own settings win.
    """
    from calomel.cli import choice

    if upstream is None and name is None:
        raise InputError("no model is named", "calomel models use NAME; calomel models list has the names")
    if upstream is not None:
        key = None if upstream_key_file is None else str(upstream_key_file.expanduser().absolute())
        more = {"upstream_model": name, "upstream_key_file": key}
        wanted = {"upstream": upstream, **{key: value for key, value in more.items() if value is not None}}
        found, later = choice.asked(wanted)
    else:
        wanted = {"model": choice.name_of(name or "")}
        found, later = "", choice.why_missing(wanted["model"])
    _choose(wanted, device, found, later, edits=edits)


def _choose(
    wanted: dict[str, str], device: str | None, found: str = "", later: str = "", *, edits: bool = False
) -> None:
    """Write the choice, and tell what it changes.

    `found` is the model that answered for it, `later` why none does now; with `edits` it is for next edits only.
    """
    from calomel.cli import choice
    from calomel.cli.editor import here
    from calomel.server.settings import load
    from calomel.workspace.settings import user_settings_path

    place = user_settings_path()
    before, watched = choice.choice(), not place.is_symlink()
    wanted = {f"edit_{key}": value for key, value in wanted.items()} if edits else wanted
    choice.choose({**wanted, **({} if device is None else {"device": device})})
    now = choice.choice()
    told = choice.described(now)
    if found and now.for_edits is None:
        told = told.replace("the model at", f"{found} at", 1)
    told = re.sub(r"^the\b", "The", told)
    say(f"{told} {'are the models' if now.for_edits else 'is the model'} for all editors, in {place}.")
    if not choice.is_same(before, now):
        say(f"Before: {choice.described(before)}.")
        say("Running editors follow within a second." if watched else "Restart Calomel in running editors.")
    if later:
        say(f"It does not answer now: {later}")
    for own in choice.own_choices(here(load({}).settings)):
        say(own.told)


@models.command()
def info(name: _Name) -> None:
    """Show a model's configuration, as its files have it."""
    from calomel.cli import choice
    from calomel.weights.gguf import check_gguf

    if (packed := _packed(name)) is not None:
        check_gguf(packed)
        rows = [("file", str(packed)), ("size", _size_of(packed)), ("runs in", choice.runs_in(packed, "GGUF"))]
        say(columns(rows))
        return
    folder = _folder(name)
    told = model_info(folder)
    family = _family_name(folder)
    rows = [
        ("folder", str(folder)),
        ("family", family),
        ("size", _size_of(folder)),
        ("answers", ", ".join(told.kinds)),
        ("positions", str(told.max_context)),
        ("weights", told.weights),
    ]
    source = _source_of(folder)
    if source:
        rows.append(("from", source))
    if family not in {"calomel", "unknown"}:
        from calomel.families.table import find

        entry = find(folder)
        facts = entry.facts
        rows += [
            ("attention", facts.attention),
            ("mask", f"{facts.mask}; {'shifted logits' if facts.shift else 'no shift'}"),
            ("asked by", _ways_of(folder, entry)),
            *(("published", f"{each.name}, {each.licence}") for each in facts.checkpoints),
            ("compared", facts.parity or "without a reference yet"),
        ]
    say(columns(rows))


def _ways_of(folder: Path, family: Family) -> str:
    """How this checkpoint is asked for a gap and for a region, in words."""
    from calomel.families.configuration import token_ids
    from calomel.prompts.fim_tokens import format_of

    fill, edit = family.prompts.fim, family.prompts.edit
    if fill == "fim_tokens" and format_of(token_ids(folder), folder.name) is None:
        fill = "left_to_right"
    return f"{_way(fill)} for gaps, {_way(edit)} for regions"


def _way(kind: str) -> str:
    return _WAYS.get(kind, "the format it was trained on")


@models.command()
def estimate(
    name: Annotated[
        str,
        typer.Argument(
            help="Name from `calomel models list`, or a folder; config.json is enough.", autocompletion=_names
        ),
    ],
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:N or mps.")] = "cpu",
    dtype: _Number = None,
    cache_tokens: Annotated[int | None, typer.Option(min=16, help="Size of the prompt cache in tokens.")] = None,
    max_batch: Annotated[int | None, typer.Option(min=1, help="Maximum requests per step.")] = None,
    quantize: Quantize = None,
    memory_gib: Annotated[
        float | None,
        typer.Option(min=0.0, max=_MOST_GIB, help="Memory to plan for. Default: the device's free memory."),
    ] = None,
) -> None:
    """Show how much memory a model would take.

    It also shows the settings the server would use, and loads nothing.
    """
    from calomel.families.family import OpenOptions
    from calomel.families.loading import dtype_of
    from calomel.families.memory import free_bytes, program_bytes
    from calomel.families.plan import OutOfMemoryRefusedError, plan_of, room_on

    with _there(device):
        free = free_bytes(device) if memory_gib is None else int(memory_gib * _GIB)
        room, numbers = room_on(device, free, dtype), dtype_of(dtype, device)
    options = OpenOptions(
        device=device,
        dtype=dtype,
        cache_tokens=cache_tokens,
        max_batch=max_batch,
        quantize=quantize,
        memory_limit=room,
    )
    try:
        plan = plan_of(_folder(name, weights=False), options)
    except OutOfMemoryRefusedError as error:
        raise CommandError(str(error)) from None
    process, taken, chosen = program_bytes(device, numbers), plan.estimate, plan.options
    kind = str(numbers).removeprefix("torch.")
    rows = [
        ("weights", taken.weights, f"({quantize or kind})"),
        ("contexts", taken.cache, f"({chosen.cached} tokens of prompt cache, {kind})"),
        ("one step", taken.work, f"({plural(chosen.batch, 'request')})"),
        *([("program", process, "")] if process else []),
        ("together", taken.total + process, ""),
        ("free", free, f"on {device}: fits"),
    ]
    say(columns((name, f"{size / _MIB:.1f} MiB", more) for name, size, more in rows))


@contextmanager
def _there(device: str) -> Iterator[None]:
    """Raise InputError where a device that is asked about is not there."""
    try:
        yield
    except (AssertionError, RuntimeError):  # what PyTorch says of it depends on how it was built
        raise InputError(f"{device} is not a device of this machine", "--device cpu") from None


models.command()(recommend)


@models.command()
def families(
    guide: Annotated[bool, typer.Option(help="List published checkpoints by size instead.")] = False,
) -> None:
    """List the kinds of checkpoints that load.

    It prints their limits, too; in a Markdown table if a file or a program gets it.
    """
    if guide:
        say(guide_table(table_form()).rstrip("\n"), verbatim=True)
        return
    from calomel.families.table import FAMILIES

    say(state_table(FAMILIES, table_form()).rstrip("\n"), verbatim=True)


@models.command()
def path(
    name: Annotated[
        str | None,
        typer.Argument(help="Name from `calomel models list`, folder or GGUF file.", autocompletion=_names),
    ] = None,
) -> None:
    """Print a model's folder, or without NAME the folder of all models."""
    from calomel.weights.folders import models_folder

    say(str(models_folder() if name is None else _folder(name)))


@models.command()
def remove(
    name: Annotated[
        str,
        typer.Argument(help="Name of a model that `calomel models fetch` brought.", autocompletion=_fetched_names),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """Delete a fetched model.

    It deletes only what `calomel models fetch` brought into the models folder.
    """
    from calomel.cli import choice
    from calomel.cli.editor import here
    from calomel.server.settings import load

    folder = _fetched_folder(name)
    now = choice.choice()
    for server in (now, now.for_edits):
        if server and not (server.url or server.upstream) and str(server.model) in {name, folder.name, str(folder)}:
            raise InputError(f"{name} is the model for all editors", "calomel models use nano")
    for own in choice.own_choices(here(load({}).settings)):
        if own.model in {name, folder.name, str(folder)}:
            raise InputError(f"{name} is the model of {own.editor}", own.advice)
    size = sum(each.lstat().st_size for each in folder.rglob("*") if each.is_symlink() or not each.is_dir())
    if not yes:
        if not sys.stdin.isatty():
            raise InputError(f"{folder} ({size / _GIB:.2f} GiB) would be deleted", "add --yes")
        typer.confirm(f"Delete {visible(str(folder))} ({size / _GIB:.2f} GiB)?", abort=True)
    # Half of it would look like a model.
    gone = folder.rename(folder.with_name(f".{folder.name}.{os.getpid()}"))
    shutil.rmtree(gone)
    say(f"Deleted {folder}: {size:,} bytes are free again.")


def _fetched_folder(name: str) -> Path:
    """The folder of a fetched model. Raises InputError for any other, and ModelNameError for a link out."""
    from calomel.weights.folders import SHIPPED, models_folder, named

    if name == SHIPPED:
        raise InputError(f"{SHIPPED} is part of Calomel")
    folder = named(name.replace("/", "--"))
    if folder is None:
        raise InputError(f"{models_folder()} has no {name}", "delete a model of another program in its own folder")
    if folder.is_symlink() or not (folder / SOURCE_FILE).is_file():
        raise InputError(f"{folder} was not fetched by Calomel", "delete it yourself")
    return folder


@models.command()
def fetch(
    repository: Annotated[
        str,
        typer.Argument(
            metavar="REPO[:QUANT][@REVISION]",
            help="Repository on the Hugging Face hub; for a GGUF file OWNER/NAME:Q8_0.",
        ),
    ],
    gguf: Annotated[str | None, typer.Option(metavar="FILE", help="Fetch only this GGUF file.")] = None,
    name: Annotated[str | None, typer.Option(help="Folder name to store it under. Default: owner--name.")] = None,
    use: Annotated[bool, typer.Option("--use", help="Choose it for all editors.")] = False,
    lines: Annotated[bool, typer.Option("--lines", hidden=True)] = False,
    device: _Chosen = None,
    edits: _Edits = False,
) -> None:
    """Fetch a model from the Hugging Face hub.

    It fetches safetensors weights and configuration, or one GGUF file, never code; without a revision, the newest one,
    which it records. A GGUF file is checked, and continued after a break. HF_TOKEN has the token, if one is needed.
    """
    if (device is not None or edits) and not use:
        raise InputError("--device and --edits belong to the choice", "add --use")
    repo, _, revision = repository.removeprefix("https://huggingface.co/").rstrip("/").partition("@")
    repo, _, quant = repo.partition(":")
    folder, commit = _fetched(repo, revision or None, name, gguf or quant, lines=lines)
    if lines:
        return
    say(f"{folder} (revision {commit})")
    if use:
        from calomel.cli import choice

        _choose({"model": choice.name_of(folder.name)}, device, edits=edits)
        return
    say(f"For all editors: calomel models use {folder.name}")
    if not (gguf or quant):
        say(f"For others: calomel serve --model {folder.name}")


# Weights that are data (no pickle can hide in them), and files that say how to read them. Never Python.
_WANTED: Final = ("*.safetensors", "*.json", "merges.txt", "*.jinja", "LICENSE*", "README.md", "MODEL_CARD.md")
_COMMIT: Final = 40


def _fetched(repository: str, revision: str | None, name: str | None, gguf: str, *, lines: bool) -> tuple[Path, str]:
    """Fetch `repository` (owner/name) at `revision` (None: the newest) atomically; returns its folder and commit.

    With `gguf`, it fetches only the file of that name or quantisation, with `lines` as `fetch_gguf` does.

    Raises CommandError.
    """
    from calomel.weights.folders import NAME, REPOSITORY, SHIPPED, is_model, models_folder

    if not REPOSITORY.fullmatch(repository) or ".." in repository or "--" in repository:
        raise InputError(f"{repository} is not the name of a repository", "OWNER/NAME")
    target = name or repository.replace("/", "--")
    if not NAME.fullmatch(target):
        raise CommandError("a model's name may contain only letters, digits, '.', '_' and '-'")
    if target == SHIPPED:
        raise CommandError(f"{SHIPPED} is the shipped model's name", "choose another --name")
    place = models_folder() / target
    if place.exists():
        raise CommandError(f"{place} exists already", "remove it, or choose another --name")
    for variable in ("HF_HUB_OFFLINE", "CALOMEL_OFFLINE"):
        if os.environ.get(variable, "") not in {"", "0"}:
            raise CommandError(f"{variable} forbids downloads", f"unset {variable}")
    if gguf:
        return place, fetch_gguf(repository, revision, gguf, place, lines=lines)
    draft = place.with_name(f".{target}.{os.getpid()}")
    try:
        commit = _download(repository, revision, draft)
        _keep_data_only(draft)
        if not is_model(draft):
            raise CommandError(f"{repository} has no config.json with .safetensors weights")
        source = {"repository": repository, "revision": commit}
        (draft / SOURCE_FILE).write_text(json.dumps(source) + "\n", encoding="utf-8")
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place, commit


def _source_of(folder: Path) -> str:
    """Where a fetched model came from; empty for one that was not fetched."""
    try:
        source = read_object(folder / SOURCE_FILE, ValueError)
        return f"{source['repository']}@{source['revision']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _download(repository: str, revision: str | None, draft: Path) -> str:
    try:
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.errors import HfHubHTTPError
    except ModuleNotFoundError:
        raise CommandError(
            "the package huggingface_hub is missing", "install Calomel's extra `hub`: see docs/install.md#extras"
        ) from None
    try:
        # A branch or a tag may move between this query and the download; a commit does not.
        info = HfApi().model_info(repository, revision=revision)
        commit = str(info.sha)
        if len(commit) != _COMMIT:
            raise CommandError("the hub did not report a commit")  # noqa: TRY301 (said as it is)
        _check_names([file.rfilename for file in info.siblings or ()], repository)
        draft.mkdir(mode=0o755, parents=True)
        snapshot_download(repository, revision=commit, local_dir=draft, allow_patterns=list(_WANTED))
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        raise CommandError(
            f"the hub refused {repository} (status {status})", "check name, revision and access"
        ) from None
    except CommandError:
        raise
    except Exception as error:
        # Which errors pass through depends on what the library is made of, and changes from version to version.
        raise CommandError(
            f"cannot reach huggingface.co or write to the disk ({type(error).__name__})",
            "check the network and `df -h`",
        ) from error
    return commit


def _check_names(names: Sequence[str], repository: str) -> None:
    """Before anything is downloaded, refuse files that could not be used, or would be written elsewhere."""
    if any(PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts for name in names):
        raise CommandError(f"{repository} contains file names that lead outside it")
    if not any(name.endswith(".safetensors") and "/" not in name for name in names):
        raise CommandError(
            f"{repository} has no .safetensors weights; Calomel does not read other formats, because they can run code"
        )


def _keep_data_only(folder: Path) -> None:
    """Remove what the download left beside the model: its own bookkeeping, and any link or folder."""
    for each in sorted(folder.iterdir()):
        if each.is_symlink() or each.is_dir() or not any(each.match(pattern) for pattern in _WANTED):
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()


def _family_name(folder: Path) -> str:
    if not (folder / "config.json").is_file() and gguf_in(folder) is not None:
        return "GGUF"
    try:
        config = read_object(folder / "config.json", ValueError)
    except ValueError:
        config = {}
    # Our own format is recognised without the families, which import PyTorch.
    if "diffusion" in config:
        return "calomel"
    from calomel.infer.extras import has_engine

    if not has_engine():
        return "unknown"
    from calomel.engine import CheckpointError
    from calomel.families.table import find

    try:
        return find(folder).name
    except CheckpointError:
        return "unknown"


def _folder(name: str, *, weights: bool = True) -> Path:
    from calomel.weights import nano_path
    from calomel.weights.folders import folder_of, is_model, why_none

    folder = folder_of(name) or nano_path()
    if folder.is_file():
        raise InputError(why_none(folder))
    if not is_model(folder) and (weights or not (folder / "config.json").is_file()):
        raise InputError(f"{folder} does not contain a model: it needs config.json and .safetensors weights")
    return folder


def _packed(name: str) -> Path | None:
    """The GGUF file of a name, if nothing here unpacks it; None for other models."""
    from calomel.cli.choice import unpacks
    from calomel.weights.folders import SHIPPED, place_of

    if not name or name == SHIPPED or unpacks():
        return None
    place = place_of(name)
    return None if (place / "config.json").is_file() else gguf_in(place)


def _size_of(folder: Path) -> str:
    from calomel.weights.folders import weights_bytes

    return f"{weights_bytes(folder) / _MIB:.0f} MiB"


_STATE: Final = (
    "family", "attention", "asked for a gap, for an edit", "loads", "compared with a reference", "run on a GPU",
    "measured here", "not supported",
)  # fmt: skip
_GUIDE: Final = (
    "checkpoint", "family", "licence of its weights", "weights in bfloat16", "in eight bits", "published elsewhere",
)  # fmt: skip
_WAYS: Final = {
    "calomel": "our own format",
    "fim_tokens": "its fill-in-the-middle tokens",
    "left_to_right": "the text before a gap",
    "around": "prefix and suffix as plain text",
    "chat": "an instruction in its chat template",
}


def state_table(families: Iterable[Family], table: TableForm = markdown) -> str:
    """Which families load, were compared with a reference, ran on a GPU, and were measured."""
    return table(_STATE, map(_state, families))


def guide_table(table: TableForm = markdown) -> str:
    """Every published checkpoint, the smallest first: licence, memory of its weights, published figures."""
    rows = [(checkpoint, facts) for facts in family_facts().values() for checkpoint in facts.checkpoints]
    rows.sort(key=lambda row: (row[0].billions, row[0].name))
    return table(_GUIDE, (_guide(*row) for row in rows))


def _state(family: Family) -> tuple[str, ...]:
    facts = family.facts
    ways = "; ".join(dict.fromkeys(_way(each) for each in (family.prompts.fim, family.prompts.edit)))
    compared = f"yes (`{facts.parity}`)" if facts.parity else "no"
    return facts.title, facts.attention, ways, "yes", compared, facts.gpu or "no", facts.measured or "no", facts.limits


def _guide(checkpoint: Published, facts: FamilyFacts) -> tuple[str, ...]:
    sizes = (_gigabytes(checkpoint.billions * each) for each in (2, 1))
    return checkpoint.name, facts.title, checkpoint.licence, *sizes, checkpoint.figures


def _gigabytes(size: float) -> str:
    return f"{size * 1000:.0f} MB" if size < 1 else f"{size:.1f} GB"
