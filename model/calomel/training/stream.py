"""Batches, one a step, made here or by worker processes: the same ones either way, and in the same order."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator
from multiprocessing.sharedctypes import Synchronized

from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from calomel.prompts.tokenizer import Tokenizer
from calomel.training.batch import Batch, batches
from calomel.training.config import TrainConfig
from calomel.training.documents import DocumentSampler, read_documents
from calomel.training.edit_example import EditExampleMaker
from calomel.training.edit_sampler import EditExamples
from calomel.training.example import ExampleMaker
from calomel.training.ranks import Ranks


class BatchStream(IterableDataset[Batch]):
    """The batches of a run from `step` on.

    Every step of every rank has a random generator of its own: a resumed run goes on with the batches it would have
    had, and no two ranks read the same. The shape of a batch depends on how far the run is when the batch is made; with
    workers that is a few steps ahead of its use.

    Attributes:
        progress: the share of the run that is over, 0 to 1; set by the trainer, read by whoever makes batches.
    """

    progress: Synchronized[float]

    def __init__(self, config: TrainConfig, step: int, ranks: Ranks | None = None) -> None:
        self._config = config
        self._step = step
        self._ranks = ranks or Ranks()
        self.progress = multiprocessing.get_context("spawn").Value("d", 0.0)

    def __iter__(self) -> Iterator[Batch]:
        config = self._config
        sampler = DocumentSampler(read_documents(config.corpus), config.languages)
        tokenizer = Tokenizer.from_file(config.tokenizer)
        maker = ExampleMaker(tokenizer, config)
        edits = None
        if config.edits is not None:
            edits = EditExamples.from_file(config.edits, config, EditExampleMaker(tokenizer, config))
        worker = get_worker_info()
        step, stride = (self._step, 1) if worker is None else (self._step + worker.id, worker.num_workers)
        while True:
            rng = random.Random(f"{config.seed}-{step * self._ranks.count + self._ranks.rank}")
            yield next(batches(sampler, maker, config, rng, self.progress.value, edits))
            step += stride


def open_stream(stream: BatchStream, workers: int) -> Iterator[Batch]:
    """Iterate over `stream` with so many worker processes; 0 makes the batches in this one."""
    if not workers:
        return iter(stream)
    # Processes are spawned: a fork of one that has OpenMP threads may hang.
    return iter(DataLoader(stream, batch_size=None, num_workers=workers, multiprocessing_context="spawn"))
