"""Batches of one static shape, made from the corpus as they are needed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from calomel.training.branch import CANVAS, CAUSAL, CONTEXT, FILL, KEPT, Example, rows
from calomel.training.config import BatchShape, Losses, TrainConfig
from calomel.training.documents import DocumentSampler
from calomel.training.edit_sampler import EditExamples
from calomel.training.example import ExampleMaker


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of one step. B documents of T rows each; N scored rows over all of them.

    Attributes:
        ids, positions, limit: [B, T] int64; valid: [B, T] bool; text: [B, T, 3] int64. See `Example`.
        scored: [N] int64, rows of the flattened [B * T] that have a loss.
        targets: [N] int64; weights: [N] float32, so normalised that the loss is their weighted sum; groups: [N].
    """

    shape: BatchShape
    ids: Tensor
    positions: Tensor
    limit: Tensor
    valid: Tensor
    text: Tensor
    scored: Tensor
    targets: Tensor
    weights: Tensor
    groups: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on `device`."""
        moved = {
            name: getattr(self, name).to(device, non_blocking=True)
            for name in ("ids", "positions", "limit", "valid", "text", "scored", "targets", "weights", "groups")
        }
        return Batch(self.shape, **moved)


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
    """Batches without end, of the shapes that belong to `progress`; the same generator state gives the same batches.

    Shapes with a region are made from `edits`.
    """
    shapes = [shape for shape in config.shapes if shape.since <= progress < shape.until]
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
    weights = np.stack([example.weights for example in examples]).reshape(-1)
    groups = np.stack([example.groups for example in examples]).reshape(-1)
    targets = np.stack([example.targets for example in examples]).reshape(-1)
    chosen = np.flatnonzero(weights)
    room = scored_rows(shape)
    if len(chosen) > room:
        # Positions behind the end and kept tokens are the least worth; then context.
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
        ids=torch.from_numpy(np.stack([example.ids for example in examples])),
        positions=torch.from_numpy(np.stack([example.positions for example in examples])),
        limit=torch.from_numpy(np.stack([example.limit for example in examples])),
        valid=torch.from_numpy(np.stack([example.valid for example in examples])),
        text=torch.from_numpy(np.stack([example.text for example in examples])),
        scored=torch.from_numpy(scored),
        targets=torch.from_numpy(targets[scored]),
        weights=torch.from_numpy(kept_weights.astype(np.float32)),
        groups=torch.from_numpy(np.where(kept_weights > 0, kept_groups, -1)),
    )


def _normalise(weights: np.ndarray, groups: np.ndarray, losses: Losses, answers: float) -> None:
    """Scale the weights in place: each part of the loss becomes a mean of its own; those of answers times `answers`.

    Canvas A and B together mask each answer token once in expectation with weight 1 / rate each; the weights of a
    canvas are therefore divided by the number of its rows, not by the sum of the weights, which would undo them.
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
