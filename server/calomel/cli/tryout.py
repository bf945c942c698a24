"""`calomel try`: fill the holes of a few bundled files, and show what came out, right or wrong."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calomel.cli.device import check_device
from calomel.cli.errors import engine_errors_reported
from calomel.cli.fill import measures
from calomel.cli.sample import Sample, bundled_samples

if TYPE_CHECKING:
    from rich.console import Console

    from calomel.suggest.fill import Fill
    from calomel.suggest.filler import Filler


def tryout(
    policy: Annotated[str | None, typer.Option(help="Reveal policy. Default: the model's own.")] = None,
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
) -> None:
    """Fill holes in a few bundled files."""
    from statistics import median

    from rich.console import Console

    samples = bundled_samples()
    out = Console(highlight=False, soft_wrap=True)
    with engine_errors_reported():
        from calomel.suggest.fill import FillRequest
        from calomel.suggest.opening import open_filler

        check_device(device)
        began = time.perf_counter()
        with closing(open_filler(model, device)) as filler:
            loaded = time.perf_counter() - began
            out.print(f"Loaded {model or 'the shipped model, nano,'} on {device} in {loaded:.1f} s.")
            # The first request pays for buffers and thread pools that all later ones share.
            filler.fill(FillRequest(prefix="def warm_up() -> None:\n    ", path="warm_up.py"))
            answers = [_fill_and_show(out, filler, sample, policy) for sample in samples]
    equal = sum(answer.text == sample.expected for answer, sample in zip(answers, samples, strict=True))
    out.rule(style="dim")
    out.print(
        f"{equal} of {len(samples)} answers equal what the author wrote; "
        f"median {1000 * median(answer.seconds for answer in answers):.0f} ms an answer, after one to warm up. "
        "Nothing left this machine.\nYour own file: calomel fill FILE --at LINE:COLUMN"
    )


def _fill_and_show(out: Console, filler: Filler, sample: Sample, policy: str | None) -> Fill:
    from rich.text import Text

    from calomel.cli.excerpt import HOLE_STYLE, excerpt
    from calomel.suggest.fill import FillRequest

    out.print()
    out.rule(f"[bold]{sample.path}[/bold]", align="left", style="dim")
    out.print("before", style="dim")
    out.print(excerpt(out, sample.prefix, " … ", sample.suffix, style=HOLE_STYLE, before=5, after=2))
    answer = filler.fill(
        FillRequest(
            prefix=sample.prefix, suffix=sample.suffix, path=sample.path, policy=policy, min_tokens=1, fitted=True
        )
    )
    out.print("after", style="dim")
    out.print(excerpt(out, sample.prefix, answer.text, sample.suffix, before=1, after=1))
    out.print(Text(measures(answer)))
    if answer.text == sample.expected:
        out.print("equal to what the author wrote", style="green")
    else:
        out.print(Text.assemble(("differs; the author wrote ", "yellow"), sample.expected))
    return answer
