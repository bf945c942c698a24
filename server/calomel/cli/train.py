"""The training commands: `calomel corpus`, `edits`, `train` and `align`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from calomel.cli.errors import InputError
from calomel.cli.options import Device, Model, Threads, made_of
from calomel.cli.output import console

if TYPE_CHECKING:
    from calomel.training.alignment.data import Fate, Judged
    from calomel.training.alignment.run import Alignment, Evaluation


def corpus(
    out: Annotated[Path, typer.Option(help="Where the shards, the summary and the NOTICE go.")],
    cache: Annotated[Path | None, typer.Option(help="Where downloaded archives and clones are kept.")] = None,
    packages: Annotated[Path | None, typer.Option(help="List of packages, instead of the shipped lists.")] = None,
    repositories: Annotated[Path | None, typer.Option(help="List of repositories, likewise.")] = None,
) -> None:
    """Build the training corpus. Downloads packages and clones repositories: it uses the network."""
    given = locals()
    from calomel.training.corpus.build import CorpusConfig, build_corpus

    config = made_of(CorpusConfig, given)
    # Lists of one's own are all there is.
    if repositories is not None and packages is None:
        config = replace(config, packages=None)
    if packages is not None and repositories is None:
        config = replace(config, repositories=None)
    build_corpus(config, report=print)


def edits(
    corpus: Annotated[Path, typer.Option(help="Folder that `calomel corpus` has written.")],
    out: Annotated[Path, typer.Option(help="Where the stories, the summary and the NOTICE go.")],
    stories: Annotated[int, typer.Option(min=0, help="Training stories wanted.")] = 25_000,
    heldout_stories: Annotated[int, typer.Option("--heldout", min=0, help="Held-out stories wanted.")] = 300,
    commits: Annotated[int, typer.Option(min=0, help="Training stories wanted of commits, beside those.")] = 140_000,
    cache: Annotated[Path | None, typer.Option(help="Where clones are kept.")] = None,
    repositories: Annotated[Path | None, typer.Option(help="List of repositories. Default: the shipped.")] = None,
) -> None:
    """Build the edits to train on. Clones repositories, where the cache has none of them: it uses the network then."""
    given = locals()
    from calomel.training.edits.build import EditsConfig, build_edits

    build_edits(made_of(EditsConfig, given), report=print)


def train(
    config: Annotated[Path, typer.Argument(help="The run: corpus, shape of the model, losses, rows.")],
    out: Annotated[Path, typer.Option(help="Folder of the checkpoints and the log.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")] = False,
    pause_file: Annotated[Path | None, typer.Option(help="The run waits while this file exists.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Length of the run; overrides the file's.")] = None,
    device: Device = "cpu",
) -> None:
    """Train a model as CONFIG (TOML) says."""
    from calomel.training.config import TrainConfig
    from calomel.training.run import train as run

    settings = TrainConfig.from_file(config)
    if rows is not None:
        settings = replace(settings, rows=rows)
    run(settings, out, resume=resume, pause_file=pause_file, device=device)


def align(
    out: Annotated[Path, typer.Option(help="Folder of the aligned checkpoint and the log.")],
    samples: Annotated[
        list[Path], typer.Option(metavar="FILE...", help="What `calomel replay --samples --prompts` wrote.")
    ],
    model: Model = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="How often every answer is seen.")] = None,
    learning_rate: Annotated[float | None, typer.Option(min=0.0, help="Of AdamW.")] = None,
    held_out: Annotated[float | None, typer.Option(min=0.0, max=0.9, help="Share to learn nothing from.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of masks, order and what is held out.")] = None,
    threads: Threads = None,
    device: Device = "cpu",
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in --out stopped.")] = False,
) -> None:
    """Align a model with what people did about its suggestions."""
    given = locals()
    from calomel.training.alignment.data import AlignConfig, check_enough, preferences_of
    from calomel.training.alignment.run import align as run
    from calomel.weights import nano_path

    judged = list(_of_samples(samples))
    check_enough(judged)
    config = made_of(AlignConfig, given)
    done = run([*preferences_of(judged)], model or nano_path(), out, config, resume=resume, device=device)
    _tell(done)


def _of_samples(paths: Iterable[Path]) -> Iterator[Judged]:
    """Candidates that a person could have decided about. Raises InputError, SampleError."""
    from calomel.selectivity.sample import read_samples
    from calomel.suggest.wire import FieldError, decode_request
    from calomel.training.alignment.data import Judged

    found = list(read_samples(paths))
    if found and not any(sample.request is not None and sample.text is not None for sample in found):
        raise InputError("the samples hold no prompts: `calomel replay --samples FILE --prompts` keeps them")
    for sample in found:
        if sample.request is None or sample.text is None or not sample.decided:
            continue
        try:
            request = decode_request(json.dumps(sample.request))
        except FieldError as error:
            raise InputError(f"the prompt of sample {sample.question} cannot be read: {error}") from error
        fate: Fate = "accepted" if sample.accepted else "partly" if sample.outcome == "partly" else "rejected"
        yield Judged(
            request.parts,
            request.kind,
            sample.text,
            fate,
            wanted=sample.wanted,
            group=sample.group,
            max_context=request.max_context,
        )


def _tell(done: Alignment) -> None:
    from calomel.report.result import Table

    printed = console(wrap=True)
    printed.print(
        f"{done.steps} steps on {done.answers} answers to {done.questions} questions "
        f"({done.left_out} answers were too long); weights: desirable {done.desirable:.2f}, "
        f"undesirable {done.undesirable:.2f}"
    )
    rows = [
        (f"{kind}, {after.count}", mode, *_changes(done.before[kind][mode], after))
        for kind, modes in done.after.items()
        for mode, after in modes.items()
    ]
    if rows:
        caption = "scores in nats; AUROC: how well suggestion : silence tells what was taken"
        table = Table("", ("held out", "", *_SCORES), rows, caption)
        printed.print(table.to_rich())
    else:
        printed.print("nothing was held out, so nothing is known of what this is worth")
    printed.print(f"written to {done.checkpoint}; `calomel calibrate` fits its calibrator anew")


_SCORES: Final = {"taken": "taken", "rejected": "rejected", "silence": "silence", "AUROC": "auroc"}


def _changes(before: Evaluation, after: Evaluation) -> Iterator[str]:
    for name in _SCORES.values():
        yield f"{getattr(before, name):.3f} → {getattr(after, name):.3f}"
