"""Batches of one static shape, made on demand, here or by worker processes: always the same in the same order."""

from __future__ import annotations

import atexit
import math
import multiprocessing
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from multiprocessing.sharedctypes import Synchronized
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from calomel.training.branch import CANVAS, CAUSAL, CONTEXT, FILL, KEPT, Example, Floats, Ints, rows
from calomel.training.config import BatchShape, Losses, TrainConfig
from calomel.training.examples import EditExamples, ExampleMaker
from calomel.training.rendered import EDITS, TEXT, DocumentSampler, Shard, tokenizer_of

_ROWS: Final = ("ids", "positions", "limit", "valid")
_SCORED: Final = ("scored", "targets", "weights", "groups")
_CLASSES: Final = ("tokens", "shift")


@dataclass(frozen=True, slots=True)
class Batch:
    """One step: B documents of T rows each, N scored rows and K classes in total, as one row of 32-bit numbers.

    Attributes:
        shape: of the batch.
        classes: K, how many tokens the scored rows are told from; 0 for all tokens.
        numbers: int32; the parts that the properties show, one behind the other.
    """

    shape: BatchShape
    classes: int
    numbers: Tensor

    @classmethod
    def of(cls, shape: BatchShape, parts: Mapping[str, np.ndarray]) -> Batch:
        """The batch of `parts`, named like the properties; floats are stored bit by bit."""
        given = [parts[name] for name in (*_ROWS, *_SCORED, *_CLASSES)]
        flat = [each.view(np.int32) if each.dtype == np.float32 else each.astype(np.int32) for each in given]
        numbers = torch.from_numpy(np.concatenate([each.reshape(-1) for each in flat]))
        return cls(shape, len(parts["tokens"]), numbers)

    def _part(self, name: str) -> Tensor:
        total, scored = self.shape.documents * row_count(self.shape), scored_rows(self.shape)
        sizes = [total] * len(_ROWS) + [scored] * len(_SCORED) + [self.classes] * len(_CLASSES)
        parts: tuple[Tensor, ...] = self.numbers.split(sizes)
        return parts[(*_ROWS, *_SCORED, *_CLASSES).index(name)]

    def _rows(self, name: str) -> Tensor:
        return self._part(name).view(self.shape.documents, -1)

    @property
    def ids(self) -> Tensor:
        """[B, T] int32."""
        return self._rows("ids")

    @property
    def positions(self) -> Tensor:
        """[B, T] int32."""
        return self._rows("positions")

    @property
    def limit(self) -> Tensor:
        """[B, T] int32, how many rows of the front a row sees."""
        return self._rows("limit")

    @property
    def valid(self) -> Tensor:
        """[B, T] bool; False for padding."""
        return self._rows("valid") != 0

    @property
    def scored(self) -> Tensor:
        """[N] int32, rows of the flattened [B * T] that have a loss."""
        return self._part("scored")

    @property
    def targets(self) -> Tensor:
        """[N] int64, what the rows predict: token ids, or their places in `tokens`."""
        return self._part("targets").long()

    @property
    def weights(self) -> Tensor:
        """[N] float32, normalised so that the loss is their weighted sum."""
        return self._part("weights").view(torch.float32)

    @property
    def groups(self) -> Tensor:
        """[N] int32, the part of the loss; -1 for none."""
        return self._part("groups")

    @property
    def tokens(self) -> Tensor:
        """[K] int32, the token of each class."""
        return self._part("tokens")

    @property
    def shift(self) -> Tensor:
        """[K] float32, what is added to a class's logit: the sampled ones represent all tokens that were left out."""
        return self._part("shift").view(torch.float32)

    def to(self, device: torch.device) -> Batch:
        """The same batch on `device`."""
        return replace(self, numbers=self.numbers.to(device, non_blocking=True))

    def pin_memory(self) -> Batch:
        """The same batch in memory that a GPU copies from by itself."""
        return replace(self, numbers=self.numbers.pin_memory())


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
        yield collate(examples, shape, config.losses, maker.vocab_size, rng)


def collate(examples: list[Example], shape: BatchShape, losses: Losses, vocab: int, rng: random.Random) -> Batch:
    """Stack examples, choose scored rows and classes, and normalise the weights of each part of the loss.

    Of `vocab` tokens, those that are asked for and a sample of the others are the classes. Rows whose token has no room
    among them have no loss.
    """
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
    asked = targets[scored]
    tokens, shift = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    if 0 < losses.classes < vocab:
        tokens, shift, asked = _classes(asked, kept_weights, losses.classes, vocab, rng)
    _normalise(kept_weights, kept_groups, losses, shape.answers)
    kept = {
        "scored": scored,
        "targets": asked,
        "weights": kept_weights.astype(np.float32),
        "groups": np.where(kept_weights > 0, kept_groups, -1),
    }
    return Batch.of(shape, {**stacked, **kept, "tokens": tokens, "shift": shift})


def _classes(
    targets: Ints, weights: NDArray[np.float64], count: int, vocab: int, rng: random.Random
) -> tuple[Ints, Floats, Ints]:
    """`count` tokens to tell apart, what is added to their logits, and `targets` as places among them.

    The weights of rows that ask for another token become zero.
    """
    frequency = np.bincount(targets[weights > 0], minlength=vocab)
    order = np.lexsort((np.random.default_rng(rng.getrandbits(64)).permutation(vocab), -frequency))
    tokens = order[:count]
    drawn, left = int((frequency[tokens] == 0).sum()), int((frequency == 0).sum())
    shift = np.where(frequency[tokens] > 0, 0.0, math.log(left / max(1, drawn))).astype(np.float32)
    place = np.full(vocab, -1)
    place[tokens] = np.arange(count)
    weights[place[targets] < 0] = 0.0
    return tokens, shift, np.maximum(place[targets], 0)


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
        tokenizer = tokenizer_of(config.data)
        sampler = DocumentSampler(Shard(config.data / TEXT, tokenizer), config.languages)
        maker = ExampleMaker(tokenizer, config)
        edits = None
        if any(shape.region for shape in config.shapes):
            edits = EditExamples(Shard(config.data / EDITS, tokenizer), tokenizer, config)
        worker = get_worker_info()
        step, stride = (self._step, 1) if worker is None else (self._step + worker.id, worker.num_workers)
        while True:
            rng = random.Random(f"{config.seed}-{step}")
            yield next(batches(sampler, maker, config, rng, self.progress.value, edits))
            step += stride


def open_stream(stream: BatchStream, workers: int, *, pinned: bool = False) -> Iterator[Batch]:
    """Iterate over `stream` with `workers` worker processes; 0 makes the batches in this one.

    Batches of workers are `pinned` for a GPU.
    """
    if not workers:
        return iter(stream)
    # Processes are spawned: a forked process with OpenMP threads may hang.
    return iter(
        DataLoader(
            stream,
            batch_size=None,
            num_workers=workers,
            multiprocessing_context="spawn",
            worker_init_fn=_end_at_once,
            pin_memory=pinned,
        )
    )


def _end_at_once(_worker: int) -> None:
    """End this worker process without destroying its C++ libraries: their threads may abort it at that point."""
    atexit.register(os._exit, 0)
