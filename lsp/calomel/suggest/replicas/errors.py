"""What goes wrong with replicas."""

from __future__ import annotations

from typing import ClassVar

from calomel.engine.errors import CheckpointError, EngineError


class ReplicasError(CheckpointError):
    """The replicas cannot be started; the message says why, and what to do."""

    code: ClassVar[str] = "replicas_failed"


class ReplicaLostError(EngineError):
    """A replica was lost while it answered, and the request could not be asked again, or was lost again and again."""

    code: ClassVar[str] = "replica_lost"


class LineLostError(Exception):
    """Whoever was asked is gone, and nothing more will come of it. Never seen by callers of the engine."""
