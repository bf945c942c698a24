"""Batches of one static shape, made on demand, here or by worker processes: always the same in the same order."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, fields
from multiprocessing.sharedctypes import Synchronized

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from calomel.prompts.tokenizer import Tokenizer
from calomel.training.branch import CANVAS, CAUSAL, CONTEXT, FILL, KEPT, Example, rows
from calomel.training.config import BatchShape, Losses, TrainConfig
from calomel.training.corpus.shards import DocumentSampler, read_documents
from calomel.training.examples import EditExamples, ExampleMaker


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of one step: B documents of T rows each; N scored rows in total.

    Attributes:
        ids, positions, limit: [B, T] int64; valid: [B, T] bool. See `Example`.
        scored: [N] int64, rows of the flattened [B * T] that have a loss.
        targets: [N] int64; weights: [N] float32, normalised so that the loss is their weighted sum; groups: [N].
    """

    shape: BatchShape
    ids: Tensor
    positions: Tensor
    limit: Tensor
    valid: Tensor
    scored: Tensor
    targets: Tensor
    weights: Tensor
    groups: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on `device`."""
        tensors = [each.name for each in fields(self) if each.name != "shape"]
        return Batch(self.shape, **{name: getattr(self, name).to(device, non_blocking=True) for name in tensors})


def scored_rows(shape: BatchShape) -> int:
    """How many rows of a batch are scored: a fixed number, so that a compiled step has one shape."""
    return shape.documents * (shape.front + shape.holes * (shape.canvas + shape.canvas // 2))


def batches(
    sampler: DocumentSampler,
    maker: ExampleMaker,
    config: TrainConfig,
    rng: random.Random,
    progress: float = 0.0,
    edits: EditExamples | None = None,
) -> Iterator[Batch]:
    """Endless batches, in the shapes that belong to `progress`; the same generator state gives the same batches.

    Shapes with a region are made from `edits`.
    """
    shapes = [shape for shape in config.shapes if shape.since <= progress]
    shares = [shape.share for shape in shapes]
    while True:
        shape = rng.choices(shapes, shares)[0]
        phase = rng.random()
        phases = [(phase + index / (shape.documents * shape.holes)) % 1.0 for index in range(shape.documents)]
        if shape.region and edits is not None:
            examples = [edits.draw(shape, each, rng) for each in phases]
        else:
            examples = [maker.make(sampler.draw(rng), shape, each, rng) for each in phases]
        yield collate(examples, shape, config.losses, rng)


def collate(examples: list[Example], shape: BatchShape, losses: Losses, rng: random.Random) -> Batch:
    """Stack examples, choose the scored rows, and normalise the weights of each part of the loss."""
    stacked = {each.name: np.stack([getattr(example, each.name) for example in examples]) for each in fields(Example)}
    weights, groups, targets = (stacked.pop(name).reshape(-1) for name in ("weights", "groups", "targets"))
    chosen = np.flatnonzero(weights)
    room = scored_rows(shape)
    if len(chosen) > room:
        # Positions after the end and kept tokens are worth the least; then context.
        order = np.array([CANVAS, CAUSAL, CONTEXT, KEPT, FILL])
        rank = np.argsort(order)[groups[chosen]] + np.array([rng.random() for _ in chosen]) * 0.5
        chosen = np.sort(chosen[np.argsort(rank)[:room]])
    padding = room - len(chosen)
    scored = np.concatenate([chosen, np.zeros(padding, dtype=np.int64)])
    kept_groups, kept_weights = groups[scored], weights[scored].astype(np.float64)
    kept_weights[len(chosen) :] = 0.0
    _normalise(kept_weights, kept_groups, losses, shape.answers)
    return Batch(
        shape=shape,
        **{name: torch.from_numpy(each) for name, each in stacked.items()},
        scored=torch.from_numpy(scored),
        targets=torch.from_numpy(targets[scored]),
        weights=torch.from_numpy(kept_weights.astype(np.float32)),
        groups=torch.from_numpy(np.where(kept_weights > 0, kept_groups, -1)),
    )


def _normalise(weights: np.ndarray, groups: np.ndarray, losses: Losses, answers: float) -> None:
    """Scale the weights in place: each part of the loss becomes a mean; those of answers are multiplied by `answers`.

    Canvas A and B together mask each answer token once in expectation, with weight 1 / rate each; the weights of a
    canvas are therefore divided by the number of its rows, not by the sum of the weights, which would cancel them.
    """
    for group, share in (
        (CONTEXT, losses.context),
        (CAUSAL, losses.causal * answers),
        (FILL, losses.fill * answers),
    ):
        members = (groups == group) & (weights > 0)
        weights[members] *= share / max(1, int(members.sum()))
    canvas = ((groups == CANVAS) | (groups == KEPT)) & (weights > 0)
    weights[canvas] *= losses.canvas * answers / max(1, int(canvas.sum()))


def row_count(shape: BatchShape) -> int:
    """Rows of one document of `shape`."""
    return shape.front + shape.holes * rows(shape)


class BatchStream(IterableDataset[Batch]):
    """The batches of a run from `step` on.

    Every step has a random generator of its own: a resumed run continues with the batches it would have had. The shape
    of a batch depends on the run's progress when the batch is made; with workers that is a few steps before it is used.

    Attributes:
        progress: the finished share of the run, 0 to 1; set by the trainer, read by the makers of batches.
    """

    progress: Synchronized[float]

    def __init__(self, config: TrainConfig, step: int) -> None:
        self._config = config
        self._step = step
        self.progress = multiprocessing.get_context("spawn").Value("d", 0.0)

    def __iter__(self) -> Iterator[Batch]:
        config = self._config
        sampler = DocumentSampler(read_documents(config.corpus), config.languages)
        tokenizer = Tokenizer.from_file(config.tokenizer)
        maker = ExampleMaker(tokenizer, config)
        edits = None
        if config.edits is not None:
            edits = EditExamples.from_file(config.edits, tokenizer, config)
        worker = get_worker_info()
        step, stride = (self._step, 1) if worker is None else (self._step + worker.id, worker.num_workers)
        while True:
            rng = random.Random(f"{config.seed}-{step}")
            yield next(batches(sampler, maker, config, rng, self.progress.value, edits))
            step += stride


def open_stream(stream: BatchStream, workers: int) -> Iterator[Batch]:
    """Iterate over `stream` with `workers` worker processes; 0 makes the batches in this one."""
    if not workers:
        return iter(stream)
    # Processes are spawned: a forked process with OpenMP threads may hang.
    return iter(
        DataLoader(
            stream, batch_size=None, num_workers=workers, multiprocessing_context="spawn", worker_init_fn=_end_at_once
        )
    )


def _end_at_once(_worker: int) -> None:
    """End this worker process without destroying its C++ libraries: their threads may abort it at that point."""
    atexit.register(os._exit, 0)
