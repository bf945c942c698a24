"""The engine's exceptions: one tree, each with a stable code and a sentence that says what to do.

A door (HTTP, LSP, command line) maps `EngineError.code` once; nothing inside the engine knows about status codes.
"""

from __future__ import annotations

from typing import ClassVar


class EngineError(Exception):
    """Anything that the engine refuses, or that fails in it."""

    code: ClassVar[str] = "engine_error"


class CheckpointError(EngineError):
    """The checkpoint folder is incomplete, or its tensors do not fit its configuration."""

    code = "checkpoint_error"


class InvalidRequestError(EngineError):
    """A request's own fields are wrong; the message names the field."""

    code = "invalid_request"


class ContextTooLongError(InvalidRequestError):
    """Context plus answer exceed the positions that the model was trained on."""

    code = "context_length_exceeded"


class CacheFullError(EngineError):
    """Every page of the prefix cache is in use by other requests; try again when one has ended."""

    code = "cache_full"


class ConstraintFailedError(EngineError):
    """The request's constraint allows no continuation: no token is allowed, or a promised one is refused."""

    code = "constraint_failed"


class RequestCancelledError(EngineError):
    """The caller cancelled the request before it was finished."""

    code = "cancelled"


class RequestFailedError(EngineError):
    """Something unexpected failed while this request was served; the cause is attached, other requests go on."""

    code = "request_failed"


class NotFiniteError(RequestFailedError):
    """The network gave numbers that are none for this request; other requests go on."""

    code = "not_finite"


class DeadlineExceededError(EngineError):
    """The request's deadline passed before its first step was finished."""

    code = "deadline_exceeded"


class EngineStoppedError(EngineError):
    """The engine was closed, or its thread failed; the cause is attached."""

    code = "engine_stopped"
