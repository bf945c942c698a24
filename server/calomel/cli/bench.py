"""`calomel bench`: quality and speed of a model, measured on this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from calomel.cli.bench_curve import curve
from calomel.cli.bench_failures import decoding, failures
from calomel.cli.bench_options import (
    Device,
    Json,
    MaxSteps,
    Model,
    Policy,
    Quantize,
    Quick,
    Results,
    Resume,
    Seed,
    Threads,
    bench_errors_reported,
)
from calomel.cli.bench_overlap import overlap
from calomel.cli.bench_recall import recall
from calomel.cli.bench_server import load, replicas, soak
from calomel.cli.bench_speculation import speculation
from calomel.cli.bench_steps import steps
from calomel.cli.bench_window import window
from calomel.cli.errors import CommandError, InputError

bench = typer.Typer(help="Measure quality and speed on this machine.", no_args_is_help=True, rich_markup_mode=None)

bench.command()(load)
bench.command()(replicas)
bench.command()(soak)
bench.command()(window)
bench.command()(curve)
bench.command()(failures)
bench.command()(decoding)
bench.command()(overlap)
bench.command()(recall)
bench.command()(speculation)
bench.command()(steps)

_LEAST_CONTEXT, _MOST_CONTEXT = 512, 32_768


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
    contexts: Annotated[
        list[str] | None,
        typer.Option("--context", metavar="2K|8K|32K", help="Put so much related code in front; repeatable."),
    ] = None,
    holes_per_kind: Annotated[int | None, typer.Option(min=4, help="Held-out holes of each kind.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    oracle: Annotated[bool, typer.Option("--oracle", help="Check the bench itself, with the right answers.")] = False,
    human_eval: Annotated[bool, typer.Option(help="Include HumanEval-Infilling where its files are.")] = True,
    data: Annotated[Path | None, typer.Option(help="Folder of public data. Default: CALOMEL_DATA.")] = None,
    quantize: Quantize = None,
    resume: Resume = True,
    json: Json = None,
    results: Results = None,
) -> None:
    """Quality: fill held-out holes, next to left-to-right decoding."""
    with bench_errors_reported(device):
        from calomel.bench.infill import InfillOptions, run_infill

        options = InfillOptions(
            model=model,
            device=device,
            threads=threads,
            policy=policy,
            max_steps=max_steps,
            policies=tuple(filter(None, (policies or "").split(","))),
            contexts=tuple(map(_size, contexts or ())),
            holes_per_kind=holes_per_kind,
            seed=seed,
            quick=quick,
            oracle=oracle,
            human_eval=human_eval,
            data=data,
            resume=resume,
            json=json,
            results=results,
            quantize=_eight_bits(quantize),
        )
        print(run_infill(options).to_markdown())


@bench.command(name="quantize")
def quantize_bench(
    model: Model = None,
    weights: Annotated[
        str | None, typer.Option(metavar="KIND,KIND…", help="float32, bfloat16, int8, fp8: beside the first of them.")
    ] = None,
    device: Device = "cpu",
    threads: Threads = None,
    holes_per_kind: Annotated[int | None, typer.Option(min=4, help="Held-out holes of each kind.")] = None,
    seed: Seed = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """Weights in eight bits: exact matches, memory and time beside the weights as they are."""
    with bench_errors_reported(device):
        from calomel.bench.quantize import QuantizeOptions, run_quantize

        options = QuantizeOptions(
            model=model,
            kinds=tuple(filter(None, (weights or "").split(","))),
            device=device,
            threads=threads,
            holes_per_kind=holes_per_kind,
            seed=seed,
            quick=quick,
            json=json,
            results=results,
        )
        print(run_quantize(options).to_markdown())


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
    bf16: Annotated[bool, typer.Option(help="Also compare the verified policy in bfloat16.")] = True,
    resume: Resume = True,
    json: Json = None,
    results: Results = None,
) -> None:
    """Speed: cold and warm, by size of context and length of answer."""
    with bench_errors_reported(device):
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
            bf16=bf16,
            resume=resume,
            json=json,
            results=results,
        )
        print(run_speed(options).to_markdown())


@bench.command()
def related(
    folder: Annotated[
        Path | None, typer.Argument(help="A workspace. Default: 2,000 files of Python's library.")
    ] = None,
    quick: Quick = False,
    seed: Annotated[int, typer.Option(help="Decides at which places is asked.")] = 1,
    json: Json = None,
    results: Results = None,
) -> None:
    """The code around: reading a workspace in the background, and what a question about it costs."""
    from calomel.bench.related import RelatedBenchError, RelatedOptions, run_related

    try:
        options = RelatedOptions(folder=folder, quick=quick, seed=seed, json=json, results=results)
        print(run_related(options).to_markdown())
    except RelatedBenchError as error:
        raise CommandError(str(error)) from error


@bench.command()
def keystrokes(
    model: Model = None,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """The editor's side: from a keystroke to its suggestion, through the real language server."""
    from calomel.bench.keystrokes import KeystrokesOptions, run_keystrokes
    from calomel.bench.lsp_session import SessionError

    try:
        print(run_keystrokes(KeystrokesOptions(model=model, quick=quick, json=json, results=results)).to_markdown())
    except SessionError as error:
        raise CommandError(str(error)) from error


@bench.command()
def peers(
    model: Model = None,
    context: Annotated[
        int | None, typer.Option(min=512, help="Tokens of prompt. Default: 8192, with --quick 2048.")
    ] = None,
    holes: Annotated[int | None, typer.Option(min=4, help="Rests of lines to fill.")] = None,
    part: Annotated[
        list[str] | None, typer.Option(help="holes, half-billion or diffusion-gemma; repeatable. Default: all.")
    ] = None,
    seed: Seed = 1,
    quick: Quick = False,
    json: Json = None,
    results: Results = None,
) -> None:
    """Other engines: the same weights left to right in transformers and llama.cpp, and two more races, beside ours."""
    with bench_errors_reported("cpu"):
        from calomel.bench.peers.run import PARTS, PeersOptions, run_peers

        unknown = [name for name in part or () if name not in PARTS]
        if unknown:
            raise InputError(f"there is no part {unknown[0]!r} of this bench: {', '.join(PARTS)}")
        options = PeersOptions(
            model=model,
            context=context,
            holes=holes,
            seed=seed,
            quick=quick,
            parts=tuple(name for name in PARTS if not part or name in part),
            json=json,
            results=results,
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
    peer: Annotated[str | None, typer.Option(help="Score recorded answers instead of a model: mercury.")] = None,
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
    with bench_errors_reported(device):
        from calomel.bench.cases import SuiteError
        from calomel.bench.edits import EditsOptions, run_edits
        from calomel.bench.held_edits import HeldOptions, run_held_edits

        if peer not in {None, "mercury"}:
            raise InputError(f"--peer {peer!r}: recordings are known of mercury alone")
        if kind not in {"edit", "fill"}:
            raise InputError(f"--kind {kind!r} is neither edit nor fill")
        if held_out and suite is not None:
            raise InputError("--held-out brings its own edits: leave the folder out")
        threshold = _aggressiveness(aggressiveness)
        try:
            if held_out:
                held = HeldOptions(
                    stories=stories,
                    kinds=tuple(filter(None, (kinds or "").split(","))),
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
                print(run_held_edits(held).to_markdown())
                return
            if suite is None:
                raise InputError("name a folder of next-edit scenarios, or say --held-out")
            options = EditsOptions(
                suite=suite,
                peer="mercury" if peer else None,
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
            print(run_edits(options).to_markdown())
        except SuiteError as error:
            raise CommandError(str(error)) from error


@bench.command()
def selectivity(
    samples: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What `calomel replay --samples` wrote.")],
    personal: Annotated[
        bool, typer.Option("--personal", help="Also fit to the first half of each file, and judge on the second.")
    ] = False,
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
        options = SelectivityOptions(tuple(samples), model, personal, seed, json, results)
        print(run_selectivity(options).to_markdown())
    except (SampleError, CalibratorError) as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error


def _aggressiveness(text: str) -> Literal["quiet", "balanced", "eager"] | float:
    """A name or a probability; raises InputError for something else."""
    if text in {"quiet", "balanced", "eager"}:
        return cast("Literal['quiet', 'balanced', 'eager']", text)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise InputError(f"--aggressiveness {text!r} is neither quiet, balanced, eager nor a probability")
    return number


def _eight_bits(text: str | None) -> Literal["int8", "fp8"] | None:
    if text not in {None, "int8", "fp8"}:
        raise InputError(f"--quantize is {text!r}; there are int8 and fp8")
    return cast("Literal['int8', 'fp8'] | None", text)


def _size(text: str) -> int:
    """Tokens of `8K` or `8192`; raises InputError for something else."""
    match = re.fullmatch(r"([1-9][0-9]{0,5})([kK]?)", text)
    size = int(match[1]) * (1024 if match[2] else 1) if match else 0
    if not _LEAST_CONTEXT <= size <= _MOST_CONTEXT:
        raise InputError(f"--context {text!r} is no size between {_LEAST_CONTEXT} and 32K, such as 2K, 8K or 4096")
    return size
