"""`calomel bench`: quality and speed of a model, measured on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from calomel.cli.chosen import AnyDevice, AnyModel, AnyUpstream, UpstreamModel, chosen
from calomel.cli.output import (
    Aggressiveness,
    Device,
    InputError,
    Model,
    Quantize,
    Resume,
    Seed,
    Threads,
    made_of,
    say,
)

if TYPE_CHECKING:
    from calomel.report.result import Report

_Options = TypeVar("_Options")

bench = typer.Typer(help="Measure quality and speed on this machine.", no_args_is_help=True, rich_markup_mode=None)

Policy = Annotated[
    str | None, typer.Option(help="Reveal policy; add @STEPS to limit the steps. Default: the model's own.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A subset that takes at most three minutes.")]
Json = Annotated[Path | None, typer.Option(help="Write the figures as JSON to this file.")]
Results = Annotated[
    Path | None, typer.Option(help="Write the page and its figures into this folder, e.g. docs/results.")
]


def _kinds(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


@bench.command()
def infill(
    model: AnyModel = None,
    upstream: AnyUpstream = None,
    upstream_model: UpstreamModel = None,
    device: AnyDevice = None,
    threads: Threads = None,
    policy: Policy = None,
    holes_per_kind: Annotated[int | None, typer.Option("--gaps-per-kind", min=4, help="Gaps of each kind.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    quantize: Quantize = None,
    resume: Resume = True,
    json: Json = None,
    results: Results = None,
) -> None:
    """Quality: fill held-out gaps.

    It compares the answers with left-to-right decoding.
    """
    given = locals()
    from calomel.bench.infill import InfillOptions, run_infill

    _report(run_infill, InfillOptions, {**given, **chosen(given).options})


@bench.command()
def speed(
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    policy: Policy = None,
    contexts: Annotated[
        list[int] | None, typer.Option("--context", min=1, help="Context size in tokens; repeatable.")
    ] = None,
    answers: Annotated[
        list[int] | None, typer.Option("--answer", min=1, help="Answer length in tokens; repeatable.")
    ] = None,
    cases: Annotated[int | None, typer.Option(min=1, help="Repetitions of each case.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """Speed, by size of context and length of answer."""
    given = locals()
    from calomel.bench.speed import SpeedOptions, run_speed

    _report(run_speed, SpeedOptions, given)


@bench.command()
def keystrokes(model: Model = None, quick: Quick = False, json: Json = None, results: Results = None) -> None:
    """Time from a keystroke to its suggestion.

    It uses the real language server.
    """
    from calomel.bench.keystrokes import run_keystrokes

    _print(run_keystrokes(model, quick=quick), json, results)


@bench.command()
def use(
    model: Model = None,
    upstream: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Ask the model of this server.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """Suggestions while you type: how soon, how often, how right.

    A simulated person types held-out files through the real language server.
    """
    from calomel.bench.use import run_use

    _print(run_use(model, upstream, quick=quick, seed=seed), json, results)


@bench.command()
def load(
    clients: Annotated[int, typer.Option(min=1, max=4096, help="Number of simultaneous clients.")] = 64,
    minutes: Annotated[
        float | None, typer.Option(min=0.05, help="Duration. Default: 2, with --quick a quarter.")
    ] = None,
    context: Annotated[int, typer.Option(min=256, max=32_768, help="Approximate context size in tokens.")] = 2048,
    max_requests: Annotated[
        int | None, typer.Option(min=1, help="Request limit of the server. Default: its own.")
    ] = None,
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    seed: Seed = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """The server under load.

    It measures answers, errors, what one more client waits for, memory, and leaks.
    """
    given = locals()
    from calomel.bench.load import LoadOptions, run_load

    _report(run_load, LoadOptions, given)


@bench.command()
def peers(
    model: Model = None,
    context: Annotated[
        int | None, typer.Option(min=512, help="Prompt size in tokens. Default: 8192, with --quick 2048.")
    ] = None,
    holes: Annotated[int | None, typer.Option("--gaps", min=4, help="Number of line endings to complete.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """Compare with transformers and llama.cpp.

    They run the same weights from left to right.
    """
    given = locals()
    from calomel.bench.peers import PeersOptions, run_peers

    _report(run_peers, PeersOptions, given)


@bench.command()
def edits(
    suite: Annotated[Path | None, typer.Argument(help="Folder of scenarios (*.txtar), or one file.")] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Use edits in held-out packages instead of SUITE.")
    ] = False,
    baselines: Annotated[bool | None, typer.Option(help="Include the baselines. Default: with --held-out.")] = None,
    stories: Annotated[Path | None, typer.Option(help="File of editing sequences. Default: the held-out ones.")] = None,
    recorded: Annotated[
        Path | None, typer.Option(help="Folder of recorded answers of other models, instead of a model.")
    ] = None,
    chain: Annotated[
        bool, typer.Option("--chain", help="With --recorded: also accept one suggestion after another.")
    ] = False,
    kinds: Annotated[Any, typer.Option(metavar="KIND,KIND…", parser=_kinds, help="Kinds of edits to include.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of test cases, spread over kinds and languages.")
    ] = None,
    samples: Annotated[Path | None, typer.Option(help="Write candidates for `calomel calibrate`.")] = None,
    aggressiveness: Aggressiveness = "balanced",
    model: AnyModel = None,
    upstream: AnyUpstream = None,
    upstream_model: UpstreamModel = None,
    device: AnyDevice = None,
    threads: Threads = None,
    seed: Seed = 0,
    resume: Resume = True,
    json: Json = None,
    results: Results = None,
) -> None:
    """Next edits of a suite, or held-out ones by kind.

    A suite's score appears next to its published rows.
    """
    if held_out and suite is not None:
        raise InputError("a SUITE and --held-out cannot be combined", "remove one of them")
    if suite is None and not held_out:
        raise InputError("no scenarios to measure", "name a folder of next-edit scenarios, or --held-out")
    if recorded is not None and suite is None:
        raise InputError("--recorded needs scenarios", "name the folder of next-edit scenarios the answers belong to")
    if chain and recorded is None:
        raise InputError("--chain needs recorded answers", "--recorded FOLDER")
    if baselines is None:
        baselines = held_out and samples is None
    given = locals()
    if held_out:
        from calomel.bench.held_edits import HeldOptions, run_held_edits

        _report(run_held_edits, HeldOptions, {**given, **chosen(given).options})
    elif recorded is not None:
        from calomel.bench.recorded import RecordedOptions, run_recorded

        _report(run_recorded, RecordedOptions, given)
    else:
        from calomel.bench.edits import EditsOptions, run_edits

        _report(run_edits, EditsOptions, {**given, **chosen(given).options})


@bench.command()
def fills(
    file: Annotated[Path, typer.Argument(help="File of recorded answers (*.jsonl.zst).")],
    models: Annotated[
        Any, typer.Option(metavar="MODEL,MODEL…", parser=_kinds, help="Models whose answers to include.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of places, spread over languages.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Parallel processes. Default: one for each processor.")
    ] = None,
    log_prob: Annotated[
        float | None,
        typer.Option(max=0, help="Log-probability of an answer recorded without its tokens. Default: none."),
    ] = None,
    aggressiveness: Aggressiveness = "balanced",
    json: Json = None,
    results: Results = None,
) -> None:
    """Recorded fill-in answers of other models.

    It counts right and wrong answers that Calomel shows whole, changes or hides, and why.
    """
    given = locals()
    from calomel.bench.fills import FillsOptions, run_fills

    _report(run_fills, FillsOptions, given)


@bench.command()
def selectivity(
    samples: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Samples from `calomel replay --samples`.")],
    model: Model = None,
    seed: Seed = 0,
    json: Json = None,
    results: Results = None,
) -> None:
    """The filter: ranking, calibration and costs.

    It shows what each threshold and each hard filter costs, on samples of replays.
    """
    given = locals()
    from calomel.bench.selectivity import SelectivityOptions, run_selectivity

    _report(run_selectivity, SelectivityOptions, given)


@bench.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of results, such as docs/results.")],
    pages: Annotated[
        list[Path] | None, typer.Argument(help="Pages to write the tables into.", metavar="PAGE...")
    ] = None,
) -> None:
    """Write the tables of figures in the documentation.

    It reads the JSON files of earlier runs.
    """
    from calomel.bench.figures import Figures

    try:
        figures = Figures(folder)
        for page in pages or ():
            figures.write(page)
        if not pages:
            say("\n\n".join(figures.table(name, Path.cwd()) for name in figures.names))
    except ValueError as error:
        raise InputError(str(error)) from error


def _report(run: Callable[[_Options], Report], kind: type[_Options], given: Mapping[str, Any]) -> None:
    """Run a bench with those of the `given` options that it has."""
    try:
        report = run(made_of(kind, given))
    except ValueError as error:
        raise InputError(str(error)) from error
    _print(report, given["json"], given["results"])


def _print(report: Report, json: Path | None, results: Path | None) -> None:
    """Write the report to the requested files, and print it."""
    report.write(json_path=json, results=results)
    say(report.to_markdown())
