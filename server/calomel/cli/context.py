"""`calomel context`: what the model would see at a place of a file, part by part, and why."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from calomel.cli.errors import InputError
from calomel.cli.fill import offset_of, read_source
from calomel.cli.options import AsJson, Model, model_info
from calomel.cli.output import console, visible

if TYPE_CHECKING:
    # Imported where there is work for them: help shall not wait for them.
    from calomel.context.budget import ContextLimit
    from calomel.context.builder import BuiltContext
    from calomel.workspace.workspace import Situation

STYLES: Final = {
    "related": "cyan",
    "far": "blue",
    "edits": "magenta",
    "suffix": "yellow",
    "prefix": "green",
}
# An index that takes longer is used as far as it has come.
_INDEX_SECONDS: Final = 60.0
_ANSWER_TOKENS: Final = 64


def context(
    file: Annotated[Path, typer.Argument(help="The source file; it is read, never written.")],
    at: Annotated[str, typer.Option(metavar="LINE:COLUMN", help="Where the cursor is, counted from 1:1.")],
    budget: Annotated[int | None, typer.Option(min=16, help="Tokens of context. Default: what is said below.")] = None,
    workspace: Annotated[Path | None, typer.Option(help="Related code. Default: FILE's repository.")] = None,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Print what the model would see at a place in FILE, and why."""
    from calomel.context.budget import ExactCounter, default_budget
    from calomel.context.builder import ContextBuilder, part_texts
    from calomel.prompts.own import ContextRenderer
    from calomel.prompts.tokenizer import Tokenizer
    from calomel.weights import nano_path

    text, file = read_source(file), file.resolve()
    offset = offset_of(text, at, "--at")
    folder = next((each for each in file.parents if (each / ".git").exists()), None)
    if workspace is not None:
        folder = workspace.resolve()
        if not folder.is_dir():
            raise InputError(f"--workspace {workspace} is no folder")
    info = model_info(model)
    tokenizer = Tokenizer.from_file((model or nano_path()) / "tokenizer.json")
    situation = _situation(file, text, offset, folder)
    builder = ContextBuilder(ExactCounter(tokenizer))
    limit = default_budget(
        positions=info.max_context,
        supported=info.default_context,
        answer_tokens=_ANSWER_TOKENS,
        wanted=budget,
    )
    built = builder.build(situation, limit.tokens)
    tokens = len(ContextRenderer(tokenizer).render(built.parts, limit.tokens).context)
    if not as_json:
        _show(built, tokens, limit)
        return
    texts = part_texts(built.parts)
    fields = {
        "model": info.id,
        "budget": limit.tokens,
        "budget_why": limit.why,
        "default_budget": info.default_context,
        "model_positions": info.max_context,
        "tokens": tokens,
        "parts": [
            {"part": each.part, "tokens": each.tokens, "why": each.why, "text": texts[each.part]}
            for each in built.accounts
        ],
    }
    print(json.dumps(fields, ensure_ascii=False))


def _situation(file: Path, text: str, offset: int, folder: Path | None) -> Situation:
    """What an editor's side would know of the file, had it just been opened there. Raises InputError."""
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
        place.open(file.as_uri(), "", 1, text)
        situation = place.situation(file.as_uri(), offset)
    finally:
        related.stop()
    if situation is None:
        raise InputError(f"{file} cannot be opened")
    return situation


def _show(built: BuiltContext, tokens: int, limit: ContextLimit) -> None:
    from rich.table import Column, Table
    from rich.text import Text

    from calomel.context.builder import pieces

    out = console()
    for piece in pieces(built.parts):
        if piece.text:
            style = STYLES[piece.part]
            out.print(f"── {piece.part} · {visible(piece.heading)} ──", style=f"bold {style}")
            out.print(visible(piece.text), style=style, end="" if piece.text.endswith("\n") else "\n")
    table = Table("part", Column("tokens", justify="right"), "why", box=None, pad_edge=False)
    for account in built.accounts:
        table.add_row(Text(account.part, STYLES[account.part]), f"{account.tokens:,}", account.why)
    marks = "the path of the file, and the marks between the parts of the window"
    table.add_row("marks", f"{tokens - built.tokens:,}", marks)
    table.add_row("total", f"{tokens:,}", f"of {limit.tokens:,}: {limit.why}", style="bold")
    out.print()
    out.print(table)
