"""`calomel fill`: fill one hole of one file, and print it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calomel.cli.device import check_device
from calomel.cli.errors import engine_errors_reported
from calomel.cli.hole import Hole

if TYPE_CHECKING:
    # Imports torch; at run time `fill` imports it when it has work for it.
    from calomel.suggest.fill import Fill


def fill(
    file: Annotated[Path, typer.Argument(help="The source file; it is read, never written.")],
    at: Annotated[str, typer.Option(metavar="LINE:COLUMN", help="Where the hole begins, counted from 1:1.")],
    to: Annotated[
        str | None, typer.Option(metavar="LINE:COLUMN", help="Where it ends. The text in between is replaced.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, max=4096, help="Longest answer, in tokens.")] = 64,
    policy: Annotated[
        str | None, typer.Option(help="Reveal policy, e.g. threshold:0.9, verified, left_to_right.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Fill a hole in FILE and print it in context."""
    hole = Hole.in_file(file, at, to)
    with engine_errors_reported():
        from calomel.suggest.fill import FillRequest
        from calomel.suggest.opening import open_filler

        request = FillRequest(
            prefix=hole.prefix,
            suffix=hole.suffix,
            path=hole.path,
            max_tokens=max_tokens,
            policy=policy,
            min_tokens=1,
            fitted=True,
        )
        check_device(device)
        with closing(open_filler(model, device)) as filler:
            answer = filler.fill(request)
    if as_json:
        print(json.dumps(_fields(hole, at, to, answer), ensure_ascii=False))
    else:
        _show(hole, answer)


def measures(answer: Fill) -> str:
    """One line: how sure the model is, and what the answer cost."""
    return (
        f"confidence {answer.confidence:.2f} · {answer.completion_tokens} tokens in {answer.steps} steps "
        f"({answer.forwards} forwards) · {1000 * answer.seconds:.0f} ms · {answer.finish_reason}"
    )


def _show(hole: Hole, answer: Fill) -> None:
    from rich.console import Console

    from calomel.cli.excerpt import excerpt

    out = Console(highlight=False, soft_wrap=True)
    out.print(excerpt(out, hole.prefix, answer.text, hole.suffix))
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    if not answer.text:
        errors.print("Nothing that the model says fits there.")
    errors.print(measures(answer))


def _fields(hole: Hole, at: str, to: str | None, answer: Fill) -> dict[str, object]:
    return {
        "path": hole.path,
        "at": at,
        "to": to or at,
        "text": answer.text,
        "finish_reason": answer.finish_reason,
        "confidence": answer.confidence,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "cached_tokens": answer.cached_tokens,
        "steps": answer.steps,
        "forwards": answer.forwards,
        "seconds": answer.seconds,
    }
