"""What is known of a model that runs elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calomel.engine.config import DiffusionConfig, Shape
from calomel.engine.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class UpstreamShape:
    """A model's shape without its own ways: nothing of it can be judged, only asked to go on."""

    vocab_size: int
    max_position_embeddings: int
    diffusion: DiffusionConfig

    @classmethod
    def of(cls, shape: Shape, folder: str) -> UpstreamShape:
        """The shape of a checkpoint as an upstream serves it.

        Raises CheckpointError for one that reads in both directions.
        """
        if shape.diffusion.reads_suffix:
            raise CheckpointError(
                f"{folder} reads what stands behind an answer, and completions of an upstream have no place for that: "
                "leave upstream out, or take a model that reads from left to right"
            )
        diffusion = replace(shape.diffusion, verifiable=False)
        return cls(shape.vocab_size, shape.max_position_embeddings, diffusion)
