"""`calomel context`: what the model would see at a place of a file, part by part, and why."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calomel.cli.errors import InputError, check_device, engine_errors_reported
from calomel.cli.fill import Place, read_source

if TYPE_CHECKING:
    # Imported where there is work for them: help shall not wait for them.
    from rich.console import Console

    from calomel.context.budget import ContextLimit
    from calomel.context.builder import BuiltContext
    from calomel.prompts.parts import PromptParts
    from calomel.suggest.completer import ModelInfo
    from calomel.workspace.workspace import Situation

STYLES = {
    "related": "cyan",
    "far": "blue",
    "edits": "magenta",
    "suffix": "yellow",
    "prefix": "green",
}
# An index that takes longer is used as far as it has come.
_INDEX_SECONDS = 60.0
_ANSWER_TOKENS = 64


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was built for one place, and what its rendering has."""

    built: BuiltContext
    rendered: int
    limit: ContextLimit
    model: ModelInfo


def context(
    file: Annotated[Path, typer.Argument(help="The source file; it is read, never written.")],
    at: Annotated[str, typer.Option(metavar="LINE:COLUMN", help="Where the cursor is, counted from 1:1.")],
    budget: Annotated[int | None, typer.Option(min=16, help="Tokens of context. Default: what is said below.")] = None,
    workspace: Annotated[
        Path | None, typer.Option(help="Folder with related code. Default: that of the repository around FILE.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure how fast this device reads; the default follows from that.")
    ] = False,
    device: Annotated[str, typer.Option(help="With --measure: cpu, cuda or cuda:N.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Print what the model would see at a place in FILE, and why."""
    text = read_source(file)
    offset = Place.parse(at, "--at").offset(text, "--at")
    folder = workspace.resolve() if workspace is not None else _repository(file.resolve())
    if folder is not None and not folder.is_dir():
        raise InputError(f"--workspace {workspace} is no folder")
    seen = _see(file.resolve(), text, offset, folder, budget, model, device if measure else None)
    if as_json:
        print(json.dumps(_fields(seen), ensure_ascii=False))
    else:
        from rich.console import Console

        _show(Console(highlight=False, soft_wrap=True), seen)


def _repository(file: Path) -> Path | None:
    return next((folder for folder in file.parents if (folder / ".git").exists()), None)


def _see(
    file: Path, text: str, offset: int, folder: Path | None, budget: int | None, model: Path | None, device: str | None
) -> _Seen:
    from calomel.context.budget import ExactCounter, default_budget
    from calomel.context.builder import ContextBuilder
    from calomel.prompts.own import ContextRenderer
    from calomel.prompts.tokenizer import Tokenizer, TokenizerError
    from calomel.suggest.launch import describe
    from calomel.weights import nano_path

    try:
        info = describe(model)
        tokenizer = Tokenizer.from_file((model or nano_path()) / "tokenizer.json")
    except (OSError, ValueError, TokenizerError) as error:
        raise InputError(str(error)) from error
    situation = _situation(file, text, offset, folder)
    builder = ContextBuilder(ExactCounter(tokenizer))
    rate = None
    if device is not None:
        rate = _prefill_rate(model, device, builder.build(situation, info.default_context).parts, info.default_context)
        builder.clear()
    limit = default_budget(
        positions=info.max_context,
        supported=info.default_context,
        answer_tokens=_ANSWER_TOKENS,
        wanted=budget,
        prefill_rate=rate,
    )
    built = builder.build(situation, limit.tokens)
    rendered = ContextRenderer(tokenizer).render(built.parts, limit.tokens)
    return _Seen(built, len(rendered.context), limit, info)


def _situation(file: Path, text: str, offset: int, folder: Path | None) -> Situation:
    """What an editor's side would know of the file, had it just been opened there."""
    from calomel.workspace.privacy import Privacy
    from calomel.workspace.related import Related
    from calomel.workspace.settings import load_settings, user_settings_path
    from calomel.workspace.syntax import SyntaxTrees
    from calomel.workspace.workspace import Workspace

    folders = () if folder is None else (folder,)
    settings, _ = load_settings(
        user_toml=user_settings_path(), workspace_toml=None if folder is None else folder / "calomel.toml"
    )
    privacy = Privacy(folders, settings.privacy)
    verdict = privacy.allowed(file)
    if not verdict.allowed:
        raise InputError(f"{file.name} is kept from every model: {verdict.reason}")
    # A command may take its time where an editor may not.
    syntax = SyntaxTrees(parse_seconds=5.0)
    related = Related(syntax, privacy)
    place = Workspace(folders, time.monotonic, privacy=privacy, syntax=syntax, related=related)
    place.listeners += [syntax, related]
    try:
        if folders:
            related.start(folders)
            related.indexer.wait(_INDEX_SECONDS)
        uri = file.as_uri()
        place.open(uri, "", 1, text)
        situation = place.situation(uri, offset)
    finally:
        related.stop()
    if situation is None:
        raise InputError(f"{file} cannot be opened")
    return situation


def _prefill_rate(model: Path | None, device: str, parts: PromptParts, budget: int) -> float:
    """Tokens a second that the model reads on this device, from a cold start of the cache."""
    with engine_errors_reported():
        from calomel.suggest.completer import FillRequest
        from calomel.suggest.in_process import open_filler

        check_device(device)
        with closing(open_filler(model, device)) as filler:
            # The first forward of a process pays for what only it has to do.
            filler.fill(FillRequest(prefix="warm", max_tokens=1, max_steps=1))
            result = filler.fill(
                FillRequest(prefix="", parts=parts, max_context=budget, max_tokens=1, max_steps=1)
            ).result
    return result.computed_tokens / max(result.prefill_seconds, 1e-9)


def _show(out: Console, seen: _Seen) -> None:
    from rich.table import Table
    from rich.text import Text

    from calomel.cli.fill import visible
    from calomel.context.builder import pieces

    for piece in pieces(seen.built.parts):
        if piece.text:
            style = STYLES[piece.part]
            out.print(Text(f"── {piece.part} · {visible(piece.heading)} ──", f"bold {style}"))
            out.print(Text(visible(piece.text), style), end="" if piece.text.endswith("\n") else "\n")
    table = Table(box=None, pad_edge=False)
    table.add_column("part")
    table.add_column("tokens", justify="right")
    table.add_column("why")
    for account in seen.built.accounts:
        table.add_row(Text(account.part, STYLES[account.part]), f"{account.tokens:,}", account.why)
    table.add_row(
        "marks",
        f"{seen.rendered - seen.built.tokens:,}",
        "the path of the file, and the marks between the parts of the window",
    )
    table.add_row("total", f"{seen.rendered:,}", f"of {seen.limit.tokens:,}: {seen.limit.why}", style="bold")
    out.print()
    out.print(table)


def _fields(seen: _Seen) -> dict[str, object]:
    from calomel.context.builder import part_texts

    texts = part_texts(seen.built.parts)
    return {
        "model": seen.model.id,
        "budget": seen.limit.tokens,
        "budget_why": seen.limit.why,
        "default_budget": seen.model.default_context,
        "model_positions": seen.model.max_context,
        "tokens": seen.rendered,
        "parts": [
            {"part": each.part, "tokens": each.tokens, "why": each.why, "text": texts[each.part]}
            for each in seen.built.accounts
        ],
    }
