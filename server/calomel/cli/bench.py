"""`calomel bench`: quality and speed of a model, measured on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from calomel.cli.errors import CommandError, InputError, check_device, engine_errors_reported

bench = typer.Typer(help="Measure quality and speed on this machine.", no_args_is_help=True, rich_markup_mode=None)

Model = Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Processor threads of the engine.")]
Policy = Annotated[str | None, typer.Option(help="Reveal policy, also POLICY@STEPS. Default: the shipped one.")]
MaxSteps = Annotated[int | None, typer.Option(min=1, help="Denoising steps a canvas, at most.")]
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
    max_steps: MaxSteps = None,
    policies: Annotated[
        str | None, typer.Option(metavar="POLICY,POLICY…", help="Compare these policies instead of one.")
    ] = None,
    holes_per_kind: Annotated[int | None, typer.Option(min=4, help="Held-out holes of each kind.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    human_eval: Annotated[bool, typer.Option(help="Include HumanEval-Infilling where its files are.")] = True,
    data: Annotated[Path | None, typer.Option(help="Folder of public data. Default: CALOMEL_DATA.")] = None,
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
            max_steps=max_steps,
            policies=_listed(policies),
            holes_per_kind=holes_per_kind,
            seed=seed,
            quick=quick,
            human_eval=human_eval,
            data=data,
            resume=resume,
            json=json,
            results=results,
            quantize=cast("Literal['int8', 'fp8'] | None", quantize),
        )
        print(run_infill(options).to_markdown())


@bench.command()
def speed(
    model: Model = None,
    device: Device = "cpu",
    threads: Threads = None,
    policy: Policy = None,
    max_steps: MaxSteps = None,
    contexts: Annotated[
        list[int] | None, typer.Option("--context", min=1, help="Tokens of context; repeatable.")
    ] = None,
    answers: Annotated[list[int] | None, typer.Option("--answer", min=1, help="Tokens of answer; repeatable.")] = None,
    cases: Annotated[int | None, typer.Option(min=1, help="Repetitions of each.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    resume: Resume = True,
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
            max_steps=max_steps,
            contexts=tuple(contexts or CONTEXTS),
            answers=tuple(answers or ANSWERS),
            cases=cases,
            seed=seed,
            quick=quick,
            resume=resume,
            json=json,
            results=results,
        )
        print(run_speed(options).to_markdown())


@bench.command()
def keystrokes(
    model: Model = None,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """The editor's side: from a keystroke to its suggestion, through the real language server."""
    from calomel.bench.keystrokes import KeystrokesOptions, SessionError, run_keystrokes

    try:
        print(run_keystrokes(KeystrokesOptions(model=model, quick=quick, json=json, results=results)).to_markdown())
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
            json=json,
            results=results,
        )
        try:
            print(run_load(options).to_markdown())
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

        options = PeersOptions(
            model=model, context=context, holes=holes, seed=seed, quick=quick, json=json, results=results
        )
        print(run_peers(options).to_markdown())


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
    kind: Annotated[str, typer.Option(help="edit asks for the next edit, fill for text at the cursor.")] = "edit",
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

    if kind not in {"edit", "fill"}:
        raise InputError(f"--kind {kind!r} is neither edit nor fill")
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
                    json=json,
                    results=results,
                )
                report = run_held_edits(held)
            else:
                asked = EditsOptions(
                    suite=suite,
                    kind="fill" if kind == "fill" else "edit",
                    model=model,
                    device=device,
                    threads=threads,
                    baselines=bool(baselines),
                    aggressiveness=threshold,
                    seed=seed,
                    json=json,
                    results=results,
                )
                report = run_edits(asked)
        except SuiteError as error:
            raise CommandError(str(error)) from error
        print(report.to_markdown())


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
        options = SelectivityOptions(tuple(samples), model, seed, json, results)
        print(run_selectivity(options).to_markdown())
    except (SampleError, CalibratorError) as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error


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
