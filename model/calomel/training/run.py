"""The training loop behind `calomel train`; and what a run needs to resume, without a pickle."""

from __future__ import annotations

import ctypes
import json
import platform
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from safetensors.torch import load_file, save
from torch import Tensor

from calomel.engine.checkpoint import native_dtype, save_checkpoint
from calomel.engine.transformer import Transformer
from calomel.families.loading import load_checkpoint
from calomel.storage import write_whole
from calomel.training.attention import branch_structure, flash_works
from calomel.training.batch import Batch, BatchStream, batches, open_stream, row_count
from calomel.training.branch import GROUPS
from calomel.training.config import BatchShape, TrainConfig, TrainingConfigError
from calomel.training.examples import EditExamples, ExampleMaker
from calomel.training.loss import LossModel
from calomel.training.optimizer import Optimizer, rate_factor
from calomel.training.rendered import HELD_OUT, HELD_OUT_EDITS, TOKENIZER, DocumentSampler, Shard, tokenizer_of

_TENSORS: Final = "state.safetensors"
_COUNTERS: Final = "state.json"


@dataclass(slots=True)
class Counters:
    """How far the run is.

    Attributes:
        step: optimizer steps.
        rows: rows forwarded: context, heads, answers and canvases together.
        seconds: time spent training, without pauses and evaluations.
        sessions: how often the run was started.
        share: the finished share of the run, 0 to 1.
    """

    step: int = 0
    rows: int = 0
    seconds: float = 0.0
    sessions: int = 0
    share: float = 0.0


def save_state(folder: Path, state: Mapping[str, Tensor], counters: Counters) -> None:
    """Write the run's state into `folder`; each file replaces its predecessor in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / _TENSORS, save({name: tensor.cpu().contiguous() for name, tensor in state.items()}))
    write_whole(folder / _COUNTERS, json.dumps(asdict(counters)))


def load_state(folder: Path) -> tuple[dict[str, Tensor], Counters] | None:
    """What `save_state` wrote; None when there is nothing to resume from."""
    if not (folder / _COUNTERS).is_file():
        return None
    return load_file(folder / _TENSORS), Counters(**json.loads((folder / _COUNTERS).read_text(encoding="utf-8")))


_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_LARGEST_INT: Final = 2**31 - 1
_TOP_PAD_BYTES: Final = 256 * 2**20


def keep_freed_memory() -> bool:
    """Configure glibc's allocator for the rest of this process; False with another C library."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _LARGEST_INT), (_TOP_PAD, _TOP_PAD_BYTES))
    return all(mallopt(name, value) for name, value in settings)


class Interruption:
    """Whether the process was asked to end (SIGINT, SIGTERM): it does so after the current step; asked again, at once.

    Signals are handled while it is entered, and in a main thread only.

    Attributes:
        asked: to be checked between two steps.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._hear) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def progress_bar(console: Console) -> Progress:
    """Shows a run's progress on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.1f} %"))
    return Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal)


_LOG_STEPS: Final = 10
_EVALUATION_BATCHES: Final = 6
_PAUSE_POLL_SECONDS: Final = 2.0


def train(
    config: TrainConfig,
    out: Path,
    *,
    resume: bool = False,
    pause_file: Path | None = None,
    device: str = "cpu",
) -> Counters:
    """Train as `config` says; checkpoints, log and curve go to `out`.

    Args:
        config: what to train, on what, and how long.
        out: folder for all output of the run.
        resume: continue from the state in `out`, if there is one.
        pause_file: while this file exists, the run waits (and its time does not pass).
        device: where to train.

    Returns the counters at the end; the exported checkpoint is `out`/checkpoint, that of the average, if one is kept,
    `out`/average.
    """
    return Run(config, out, pause_file, torch.device(device)).go(resume=resume)


class Run:
    """One run, see `train`; weights have `dtype`, or what the device computes fastest in."""

    def __init__(
        self,
        config: TrainConfig,
        out: Path,
        pause_file: Path | None,
        device: torch.device,
        dtype: torch.dtype | None = None,
    ) -> None:
        if device.type == "cpu":
            keep_freed_memory()
        if config.threads:
            torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        self.config, self.out, self.pause_file, self.device = config, out, pause_file, device
        self.console = Console(stderr=True)
        self.tokenizer = tokenizer_of(config.data)
        out.mkdir(parents=True, exist_ok=True)
        self.model = Transformer(config.model.model_config(self.tokenizer)).to(device)
        _initialise(self.model)
        self.optimizer = Optimizer(self.model, config.optimization, dtype or native_dtype(device.type))
        self.structures: dict[BatchShape, Tensor] = {
            each: branch_structure(each, logit_shift=config.model.logit_shift).to(device) for each in config.shapes
        }
        self.interruption = Interruption()
        self.compiled: set[BatchShape] = set()
        self.loss = LossModel(
            self.model, compiled=config.optimization.compile, flash=flash_works(self.model.config, device)
        )

    def go(self, *, resume: bool, until: tuple[float, float] | None = None) -> Counters:
        """Train; with `until`, from what is done to a share of the run by a time of `time.monotonic()`."""
        init_from = self.config.init_from
        counters = Counters()
        if resume and (found := load_state(self.out)) is not None:
            state, counters = found
            self.optimizer.load(state)
        if init_from is not None and counters.step == 0:
            _check_same_tokenizer(init_from, self.config.data / TOKENIZER)
            _begin_with(self.model, load_checkpoint(init_from, device=self.device))
            self.optimizer.begin()
        counters.sessions += 1
        with self.interruption, progress_bar(self.console) as progress:
            task = progress.add_task("training", total=self.config.rows)
            self._steps(counters, lambda rows: progress.update(task, completed=rows), until)
        return counters

    def _steps(
        self, counters: Counters, shown: Callable[[int], None], until: tuple[float, float] | None = None
    ) -> None:
        """Train to the end; `shown` gets the number of rows forwarded so far after each step."""
        held_out = self._held_out()
        saved = counters.seconds
        stream = BatchStream(self.config, counters.step)
        made = open_stream(stream, self.config.workers, pinned=self.device.type == "cuda")
        sums = torch.zeros(2, len(GROUPS), 2, device=self.device)
        first, start = counters.share, time.monotonic()
        while True:
            if until is None:
                last, counters.share = 1.0, counters.rows / self.config.rows
            else:
                end, last = until
                passed = (time.monotonic() - start) / max(end - start, 1e-3)
                counters.share = first + (last - first) * min(1.0, passed)
            if counters.share >= last:
                break
            share = counters.share
            self._pause()
            began = time.monotonic()
            stream.progress.value = share
            batch = next(made).to(self.device)
            rate, cross_entropy = self._step(batch, counters.step, share)
            sums[int(batch.shape.region > 0)] += _group_sums(batch, cross_entropy)
            counters.step += 1
            # The first step of a shape compiles it: that is not training time.
            counters.seconds += time.monotonic() - began if batch.shape in self.compiled else 0.0
            self.compiled.add(batch.shape)
            counters.rows += batch.shape.documents * row_count(batch.shape)
            shown(counters.rows)
            if counters.step % _LOG_STEPS == 0:
                edits = {f"edit_{name}": loss for name, loss in _means(sums[1]).items()} if sums[1].any() else {}
                self._log(counters, {**_means(sums[0]), **edits}, rate=rate)
                sums = torch.zeros_like(sums)
            if counters.step % self.config.evaluate_steps == 0:
                self._measure(counters, held_out)
            if counters.seconds - saved > self.config.checkpoint_minutes * 60:
                self._save(counters)
                saved = counters.seconds
            if self.interruption.asked:
                break
        self._measure(counters, held_out)
        self._save(counters)

    def _step(self, batch: Batch, step: int, progress: float) -> tuple[float, Tensor]:
        options = self.config.optimization
        factor = rate_factor(step, progress, warmup_steps=options.warmup_steps, decay_share=options.decay_share)
        loss, cross_entropy = self.loss(batch, self.structures[batch.shape])
        loss.backward()
        self.optimizer.step(factor)
        return factor, cross_entropy

    def _held_out(self) -> dict[str, list[Batch]]:
        """Batches of held-out text, by the name of their losses; the same ones in every run."""
        data, config = self.config.data, self.config
        sampler = DocumentSampler(Shard(data / HELD_OUT, self.tokenizer), config.languages)
        holes = [shape for shape in config.shapes if not shape.region][-1:]
        regions = [shape for shape in config.shapes if shape.region][-1:]
        found = {"": self._few(sampler, holes)} if holes else {}
        if regions:
            edits = EditExamples(Shard(data / HELD_OUT_EDITS, self.tokenizer), self.tokenizer, config)
            found["edit_"] = self._few(sampler, regions, edits)
        return found

    def _few(
        self, sampler: DocumentSampler, shapes: list[BatchShape], edits: EditExamples | None = None
    ) -> list[Batch]:
        # Whatever a run shows on its canvases, it is evaluated on tokens masked at random.
        config = replace(self.config, shapes=tuple(shapes), beginnings=0.0)
        stream = batches(
            sampler, ExampleMaker(self.tokenizer, config), config, random.Random("held out"), shapes[0].since, edits
        )
        return [next(stream).to(self.device) for _ in range(_EVALUATION_BATCHES)]

    def _measure(self, counters: Counters, held_out: dict[str, list[Batch]]) -> None:
        """Log the losses of held-out text, also those of the averaged weights."""
        self._log(counters, self._evaluate(held_out), held_out=True)
        if self.config.optimization.average:
            with self.optimizer.averaged():
                self._log(counters, self._evaluate(held_out), held_out=True, average=True)

    def _evaluate(self, held_out: dict[str, list[Batch]]) -> dict[str, float]:
        """The losses of the held-out batches."""
        losses: dict[str, float] = {}
        for name, few in held_out.items():
            sums = torch.zeros(len(GROUPS), 2, device=self.device)
            for batch in few:
                sums += _group_sums(batch, self.loss.measure(batch, self.structures[batch.shape]))
            losses |= {f"{name}{group}": loss for group, loss in _means(sums).items()}
        return losses

    def _pause(self) -> None:
        if self.pause_file is not None and self.pause_file.exists():
            self.console.print(f"paused while {self.pause_file} exists")
            while self.pause_file.exists() and not self.interruption.asked:
                time.sleep(_PAUSE_POLL_SECONDS)

    def _log(self, counters: Counters, losses: dict[str, float], **more: float) -> None:
        entry = {
            "step": counters.step,
            "rows": counters.rows,
            "seconds": round(counters.seconds, 1),
            "rows_per_second": round(counters.rows / max(counters.seconds, 1e-9)),
            **{name: round(value, 4) for name, value in losses.items()},
            **more,
        }
        with (self.out / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
        self.console.print(" ".join(f"{name}={value}" for name, value in entry.items()))

    def _save(self, counters: Counters) -> None:
        save_state(self.out, self.optimizer.state, counters)
        self._export(self.out / "checkpoint")
        if self.config.optimization.average:
            with self.optimizer.averaged():
                self._export(self.out / "average")

    def _export(self, folder: Path) -> None:
        save_checkpoint(self.model, folder, abilities=_abilities(self.config))
        if not (folder / "tokenizer.json").exists():
            write_whole(folder / "tokenizer.json", (self.config.data / TOKENIZER).read_bytes())


def _abilities(config: TrainConfig) -> dict[str, Any]:
    """The fields of `config.json` that say what the weights were trained for."""
    if not any(shape.region for shape in config.shapes):
        return {"kinds": ["fill"]}
    return {"kinds": ["fill", "edit"], "edit_region": asdict(config.region)}


def _begin_with(model: Transformer, trained: Transformer) -> None:
    """Copy the weights of `trained`."""
    found = model.load_state_dict(trained.state_dict(), strict=False)
    unlike = [*found.unexpected_keys, *found.missing_keys]
    if unlike:
        raise TrainingConfigError(f"the starting checkpoint has another shape: {', '.join(sorted(unlike))}")


def _check_same_tokenizer(checkpoint: Path, tokenizer: Path) -> None:
    """Refuse another tokenizer: weights are meaningless with its ids."""
    theirs = checkpoint / "tokenizer.json"
    if theirs.is_file() and theirs.read_bytes() != tokenizer.read_bytes():
        raise TrainingConfigError(
            f"{theirs} and {tokenizer} differ; to train the weights further, make the shards with the former"
        )


def _initialise(model: Transformer) -> None:
    """Small embeddings; the projections that write to the residual stream start at zero (as in modded-nanogpt)."""
    for name, parameter in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            torch.nn.init.zeros_(parameter)
        elif parameter.ndim > 1:
            table = "embed" in name or "lm_head" in name
            deviation = 0.02 if table else parameter.shape[1] ** -0.5 * 0.6
            torch.nn.init.normal_(parameter, std=deviation)


def _group_sums(batch: Batch, cross_entropy: Tensor) -> Tensor:
    """[groups, 2]: the summed cross-entropy and the count of each part of the loss."""
    members = (batch.groups[:, None] == torch.arange(len(GROUPS), device=cross_entropy.device)).float()
    return torch.stack((members.T @ cross_entropy, members.sum(0)), dim=1)


def _means(sums: Tensor) -> dict[str, float]:
    return {name: float(total / max(1.0, float(count))) for name, (total, count) in zip(GROUPS, sums, strict=True)}
