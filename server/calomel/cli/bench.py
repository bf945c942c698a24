"""`calomel bench`: quality and speed of a model, measured on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from calomel.cli.errors import CommandError, InputError, check_device, engine_errors_reported

if TYPE_CHECKING:
    from calomel.report.result import Report

bench = typer.Typer(help="Measure quality and speed on this machine.", no_args_is_help=True, rich_markup_mode=None)

Model = Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Processor threads of the engine.")]
Policy = Annotated[str | None, typer.Option(help="Reveal policy, also POLICY@STEPS. Default: the shipped one.")]
Seed = Annotated[int, typer.Option(help="Decides which holes are cut.")]
Quick = Annotated[bool, typer.Option("--quick", help="A subset, within three minutes.")]
Resume = Annotated[bool, typer.Option(help="Go on where an interrupted run stopped.")]
Json = Annotated[Path | None, typer.Option(help="Write the figures as JSON to this file.")]
Results = Annotated[Path | None, typer.Option(help="Write page and figures into this folder, such as docs/results.")]


@bench.command()
def infill(
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    policy: Policy = None,
    holes_per_kind: Annotated[int | None, typer.Option(min=4, help="Held-out holes of each kind.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    quantize: Annotated[
        str | None, typer.Option(help="Weights in eight bits: int8 or fp8. Default: as they are.")
    ] = None,
    resume: Resume = True,
    json: Json = None,
    results: Results = None,
) -> None:
    """Quality: fill held-out holes, next to left-to-right decoding."""
    if quantize not in {None, "int8", "fp8"}:
        raise InputError(f"--quantize is {quantize!r}; there are int8 and fp8")
    with _errors_reported(device):
        from calomel.bench.infill import InfillOptions, run_infill

        options = InfillOptions(
            model=model,
            device=device,
            threads=threads,
            policy=policy,
            holes_per_kind=holes_per_kind,
            seed=seed,
            quick=quick,
            resume=resume,
            quantize=cast("Literal['int8', 'fp8'] | None", quantize),
        )
        _told(run_infill(options), json, results)


@bench.command()
def speed(
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    policy: Policy = None,
    contexts: Annotated[
        list[int] | None, typer.Option("--context", min=1, help="Tokens of context; repeatable.")
    ] = None,
    answers: Annotated[list[int] | None, typer.Option("--answer", min=1, help="Tokens of answer; repeatable.")] = None,
    cases: Annotated[int | None, typer.Option(min=1, help="Repetitions of each.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """Speed: cold and warm, by size of context and length of answer."""
    with _errors_reported(device):
        from calomel.bench.speed import ANSWERS, CONTEXTS, SpeedOptions, run_speed

        options = SpeedOptions(
            model=model,
            device=device,
            threads=threads,
            policy=policy,
            contexts=tuple(contexts or CONTEXTS),
            answers=tuple(answers or ANSWERS),
            cases=cases,
            seed=seed,
            quick=quick,
        )
        _told(run_speed(options), json, results)


@bench.command()
def keystrokes(
    model: Model = None,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """The editor's side: from a keystroke to its suggestion, through the real language server."""
    from calomel.bench.keystrokes import SessionError, run_keystrokes

    try:
        _told(run_keystrokes(model, quick=quick), json, results)
    except SessionError as error:
        raise CommandError(str(error)) from error


@bench.command()
def load(
    clients: Annotated[int, typer.Option(min=1, max=4096, help="Clients that ask at once.")] = 64,
    minutes: Annotated[
        float | None, typer.Option(min=0.05, max=1440, help="How long. Default: 2, with --quick a quarter of one.")
    ] = None,
    context: Annotated[int, typer.Option(min=256, max=32_768, help="Tokens around each cursor, about.")] = 2048,
    max_requests: Annotated[int | None, typer.Option(min=1, help="Places of the server. Default: its own.")] = None,
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    seed: Annotated[int, typer.Option(help="Decides where the clients type.")] = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """The server under load: answers, errors, what one more client waits for, memory, and what is left behind."""
    with _errors_reported(device):
        from calomel.bench.load import LoadOptions, ServedError, run_load

        options = LoadOptions(
            model=model,
            device=device,
            threads=threads,
            clients=clients,
            minutes=minutes,
            context=context,
            max_requests=max_requests,
            seed=seed,
            quick=quick,
        )
        try:
            _told(run_load(options), json, results)
        except ServedError as error:
            raise CommandError(str(error)) from error


@bench.command()
def peers(
    model: Model = None,
    context: Annotated[
        int | None, typer.Option(min=512, help="Tokens of prompt. Default: 8192, with --quick 2048.")
    ] = None,
    holes: Annotated[int | None, typer.Option(min=4, help="Rests of lines to fill.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """Other engines: the same weights left to right in transformers and llama.cpp, beside ours."""
    with _errors_reported("cpu"):
        from calomel.bench.peers import PeersOptions, run_peers

        options = PeersOptions(model=model, context=context, holes=holes, seed=seed, quick=quick)
        _told(run_peers(options), json, results)


@bench.command()
def edits(
    suite: Annotated[
        Path | None, typer.Argument(help="Folder of next-edit scenarios (*.txtar), or one of them.")
    ] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Edits in held-out packages instead of a suite.")
    ] = False,
    baselines: Annotated[
        bool | None, typer.Option(help="Ask the baselines, too. Default: with --held-out, unless --samples.")
    ] = None,
    stories: Annotated[Path | None, typer.Option(help="Another file of stories than the held-out ones.")] = None,
    kinds: Annotated[str | None, typer.Option(metavar="KIND,KIND…", help="Only stories of these kinds.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Moments at most, of kinds and languages alike.")] = None,
    samples: Annotated[
        Path | None, typer.Option(help="Show nothing, and write every candidate, for `calomel calibrate`.")
    ] = None,
    aggressiveness: Annotated[str, typer.Option(help="quiet, balanced, eager, or a probability.")] = "balanced",
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    seed: Annotated[int, typer.Option(help="Of the intervals.")] = 0,
    resume: Resume = True,
    json: Json = None,
    results: Results = None,
) -> None:
    """Next edits: a suite's score beside the rows that its peers published, or held-out edits by kind."""
    from calomel.cli.replay import aggressiveness_of

    if held_out and suite is not None:
        raise InputError("--held-out brings its own edits: leave the folder out")
    if suite is None and not held_out:
        raise InputError("name a folder of next-edit scenarios, or say --held-out")
    threshold = aggressiveness_of(aggressiveness)
    with _errors_reported(device):
        from calomel.bench.edits import EditsOptions, run_edits
        from calomel.bench.held_edits import HeldOptions, run_held_edits
        from calomel.bench.suite import SuiteError

        try:
            if suite is None:
                held = HeldOptions(
                    stories=stories,
                    kinds=_listed(kinds),
                    limit=limit,
                    baselines=samples is None if baselines is None else baselines,
                    aggressiveness=threshold,
                    model=model,
                    device=device,
                    threads=threads,
                    seed=seed,
                    resume=resume,
                    samples=samples,
                )
                report = run_held_edits(held)
            else:
                asked = EditsOptions(
                    suite=suite,
                    model=model,
                    device=device,
                    threads=threads,
                    baselines=bool(baselines),
                    aggressiveness=threshold,
                    seed=seed,
                )
                report = run_edits(asked)
        except SuiteError as error:
            raise CommandError(str(error)) from error
        _told(report, json, results)


@bench.command()
def selectivity(
    samples: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What `calomel replay --samples` wrote.")],
    model: Model = None,
    seed: Annotated[int, typer.Option(help="Of the intervals.")] = 0,
    json: Json = None,
    results: Results = None,
) -> None:
    """The filter: ranking, calibration, what each threshold and each hard filter costs, on samples of replays."""
    from calomel.bench.selectivity import SelectivityOptions, run_selectivity
    from calomel.selectivity.calibrator import CalibratorError
    from calomel.selectivity.sample import SampleError

    try:
        _told(run_selectivity(SelectivityOptions(tuple(samples), model, seed)), json, results)
    except (SampleError, CalibratorError) as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error


def _told(report: Report, json: Path | None, results: Path | None) -> None:
    """Write the report where that is asked for, and print it."""
    report.write(json_path=json, results=results)
    print(report.to_markdown())


@contextmanager
def _errors_reported(device: str) -> Iterator[None]:
    """Check `device`, and make what goes wrong in a bench an error of the command line."""
    check_device(device)
    with engine_errors_reported():
        from calomel.report.heldout import BenchDataError

        try:
            yield
        except BenchDataError as error:
            raise CommandError(str(error)) from error
        except ValueError as error:
            raise InputError(str(error)) from error


def _listed(text: str | None) -> tuple[str, ...]:
    """The parts of a list with commas."""
    return tuple(filter(None, (text or "").split(",")))
