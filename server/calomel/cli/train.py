"""The training commands: `calomel corpus`, `edits`, `train` and `align`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from calomel.cli.errors import CommandError, InputError, check_device

if TYPE_CHECKING:
    from calomel.selectivity.sample import Sample
    from calomel.suggest.outcome_log import OutcomeRecord
    from calomel.training.alignment.data import Fate, Judged
    from calomel.training.alignment.run import Alignment


def corpus(
    out: Annotated[Path, typer.Option(help="Where the shards, the summary and the NOTICE go.")],
    cache: Annotated[Path | None, typer.Option(help="Where downloaded archives and clones are kept.")] = None,
    packages: Annotated[
        Path | None, typer.Option(help="List of packages. Default: the one that ships; with --repositories, none.")
    ] = None,
    repositories: Annotated[
        Path | None, typer.Option(help="List of repositories. Default: the one that ships; with --packages, none.")
    ] = None,
) -> None:
    """Build the training corpus. Downloads packages and clones repositories: it uses the network."""
    from calomel.training.corpus.build import CorpusConfig, build_corpus
    from calomel.training.corpus.shards import CorpusError

    config = CorpusConfig(out=out)
    config = replace(
        config,
        cache=cache or config.cache,
        packages=packages or (None if repositories else config.packages),
        repositories=repositories or (None if packages else config.repositories),
    )
    try:
        build_corpus(config, report=print)
    except CorpusError as error:
        raise CommandError(str(error)) from error


def edits(
    corpus: Annotated[Path, typer.Option(help="Folder that `calomel corpus` has written.")],
    out: Annotated[Path, typer.Option(help="Where the stories, the summary and the NOTICE go.")],
    stories: Annotated[int, typer.Option(min=0, help="Training stories wanted.")] = 25_000,
    heldout: Annotated[int, typer.Option(min=0, help="Held-out stories wanted.")] = 300,
    commits: Annotated[int, typer.Option(min=0, help="Training stories wanted of commits, beside those.")] = 140_000,
    cache: Annotated[Path | None, typer.Option(help="Where clones are kept.")] = None,
    repositories: Annotated[Path | None, typer.Option(help="List of repositories. Default: the shipped.")] = None,
) -> None:
    """Build the edits to train on. Clones repositories, where the cache has none of them: it uses the network then."""
    from calomel.training.corpus.shards import CorpusError
    from calomel.training.edits.build import EditsConfig, build_edits

    config = EditsConfig(corpus=corpus, out=out, stories=stories, heldout_stories=heldout, commits=commits)
    config = replace(config, cache=cache or config.cache, repositories=repositories or config.repositories)
    try:
        build_edits(config, report=print)
    except CorpusError as error:
        raise CommandError(str(error)) from error


def train(
    config: Annotated[Path, typer.Argument(help="The run: corpus, shape of the model, losses, rows.")],
    out: Annotated[Path, typer.Option(help="Folder of the checkpoints and the log.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")] = False,
    pause_file: Annotated[Path | None, typer.Option(help="The run waits while this file exists.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Length of the run; overrides the file's.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
) -> None:
    """Train a model as CONFIG (TOML) says."""
    from calomel.engine.errors import CheckpointError
    from calomel.training.config import TrainConfig, TrainingConfigError
    from calomel.training.corpus.shards import CorpusError
    from calomel.training.run import train as run

    try:
        settings = TrainConfig.from_file(config)
    except TrainingConfigError as error:
        raise InputError(str(error)) from error
    check_device(device)
    if rows is not None:
        settings = replace(settings, rows=rows)
    try:
        run(settings, out, resume=resume, pause_file=pause_file, device=device)
    except (TrainingConfigError, CorpusError, CheckpointError) as error:
        raise InputError(str(error)) from error


# A day of one window is no sign of a day of another: whoever is held out is held out for so long.
_DAY: Final = 86_400
# What somebody said by doing nothing, or by not writing what was held back, in shares of what a refusal says.
_IGNORED: Final = 0.5
_ACCEPTED: Final = frozenset({"accepted", "typed"})
_OFF: Final = (
    "it is kept only with `log.outcome_text = true` in your own settings; alignment needs {} suggestions with text"
)


def align(
    out: Annotated[Path, typer.Option(help="Folder of the aligned checkpoint and the log.")],
    samples: Annotated[
        list[Path] | None, typer.Option(metavar="FILE...", help="What `calomel replay --samples --prompts` wrote.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="An outcome log; the prompts lie beside it.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="Checkpoint folder to begin with. Default: the shipped one.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="How often every answer is seen.")] = None,
    learning_rate: Annotated[float | None, typer.Option(min=0.0, help="Of AdamW.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Questions in a minibatch.")] = None,
    draws: Annotated[int | None, typer.Option(min=1, help="Masks of an answer in each epoch.")] = None,
    context: Annotated[int | None, typer.Option(min=64, help="Tokens of prompt at most.")] = None,
    held_out: Annotated[
        float | None, typer.Option(min=0.0, max=0.9, help="Share that nothing is learned from.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of masks, order and what is held out.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor threads.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")] = False,
) -> None:
    """Align a model with what people did about its suggestions."""
    from calomel.training.alignment.data import AlignConfig, AlignmentError, check_enough, preferences_of

    if not samples and log is None:
        raise InputError("name files with --samples, or an outcome log with --log")
    judged = [*_of_samples(samples or ()), *(_of_log(log) if log is not None else ())]
    try:
        check_enough(judged)
    except AlignmentError as error:
        raise InputError(str(error)) from error
    options: dict[str, Any] = {
        "epochs": epochs,
        "learning_rate": learning_rate,
        "batch": batch,
        "draws": draws,
        "context": context,
        "held_out": held_out,
        "seed": seed,
        "threads": threads,
    }
    config = AlignConfig(**{name: value for name, value in options.items() if value is not None})
    check_device(device)
    from calomel.engine.errors import CheckpointError
    from calomel.prompts.tokenizer import TokenizerError
    from calomel.training.alignment.run import align as run
    from calomel.weights import nano_path

    try:
        done = run([*preferences_of(judged)], model or nano_path(), out, config, resume=resume, device=device)
    except (AlignmentError, CheckpointError, TokenizerError) as error:
        raise InputError(str(error)) from error
    _tell(done)


def _of_samples(paths: Iterable[Path]) -> Iterator[Judged]:
    """Candidates that a person could have decided about. Raises InputError."""
    from calomel.selectivity.sample import SampleError, read_samples

    found = bare = 0
    try:
        for sample in read_samples(paths):
            found += 1
            if sample.request is None or sample.text is None:
                bare += 1
            elif sample.decided:
                yield _judged_sample(sample)
    except SampleError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error
    if found and found == bare:
        raise InputError("the samples hold no prompts: `calomel replay --samples FILE --prompts` keeps them")


def _judged_sample(sample: Sample) -> Judged:
    import json

    from calomel.suggest.fields import FieldError
    from calomel.suggest.wire import decode_request
    from calomel.training.alignment.data import Judged

    try:
        request = decode_request(json.dumps(sample.request))
    except FieldError as error:
        raise InputError(f"the prompt of sample {sample.question} cannot be read: {error}") from error
    fate: Fate = "accepted" if sample.accepted else "partly" if sample.outcome == "partly" else "rejected"
    return Judged(
        request.parts,
        request.kind,
        sample.text or "",
        fate,
        wanted=sample.wanted,
        group=sample.group,
        max_context=request.max_context,
    )


def _of_log(path: Path) -> Iterator[Judged]:
    """Suggestions of an outcome log whose prompt was kept. Raises InputError."""
    from calomel.suggest.outcome_history import read_outcomes
    from calomel.suggest.prompt_log import prompt_log_path, read_prompts
    from calomel.training.alignment.data import NEEDED, Judged

    if not path.is_file():
        raise InputError(f"{path} does not exist")
    prompts_path = prompt_log_path(path)
    try:
        outcomes, prompts = read_outcomes(path), read_prompts(prompts_path)
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error
    if not prompts.records:
        known = len({(record.session, record.id) for record in outcomes.records})
        raise InputError(
            f"{path} tells of {known} suggestions, but {prompts_path} holds no text: {_OFF.format(NEEDED)}"
        )
    fates = _fates(outcomes.records)
    for prompt in prompts.records:
        fate = fates.get((prompt.session, prompt.id))
        if fate is not None:
            name, certainty, day = fate
            yield Judged(
                prompt.request.parts,
                prompt.kind,
                prompt.text,
                name,
                group=day,
                certainty=certainty,
                max_context=prompt.request.max_context,
            )


def _fates(records: Iterable[OutcomeRecord]) -> Mapping[tuple[str, str], tuple[Fate, float, str]]:
    """What became of each suggestion in the end: its fate, how sure that is, and its day.

    What was shown and neither taken nor rejected, and what was held back and not typed either, says something too: it
    was not needed. What was superseded, or never more than shown, says nothing.
    """
    found: dict[tuple[str, str], tuple[Fate, float, str]] = {}
    for record in records:
        fate: tuple[Fate, float] | None = None
        if record.outcome in _ACCEPTED:
            fate = "accepted", 1.0
        elif record.outcome == "partly_accepted":
            fate = "partly", 1.0
        elif record.outcome == "rejected":
            fate = "rejected", 1.0
        elif record.outcome in {"ignored", "withheld"}:
            fate = "rejected", _IGNORED
        name = record.session, record.id
        if fate is not None and (name not in found or record.outcome not in {"ignored", "withheld"}):
            found[name] = *fate, f"{int(record.time // _DAY)}"
    return found


def _tell(done: Alignment) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(
        f"{done.steps} steps on {done.answers} answers to {done.questions} questions "
        f"({done.left_out} answers were too long); weights: desirable {done.desirable:.2f}, "
        f"undesirable {done.undesirable:.2f}"
    )
    if not done.after:
        console.print("nothing was held out, so nothing is known of what this is worth")
    table = Table("held out", "", "taken", "rejected", "silence", "AUROC", box=None)
    for kind, modes in done.after.items():
        for mode, after in modes.items():
            before = done.before[kind][mode]
            table.add_row(
                f"{kind}, {after.count}",
                mode,
                f"{before.taken:.2f} → {after.taken:.2f}",
                f"{before.rejected:.2f} → {after.rejected:.2f}",
                f"{before.silence:.2f} → {after.silence:.2f}",
                f"{before.auroc:.3f} → {after.auroc:.3f}",
            )
    if done.after:
        console.print(table)
        console.print("scores in nats; AUROC: how well suggestion : silence tells what was taken")
    console.print(f"written to {done.checkpoint}; `calomel calibrate` fits its calibrator anew")
