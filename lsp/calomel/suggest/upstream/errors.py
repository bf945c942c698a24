"""What an upstream does wrong."""

from __future__ import annotations

from calomel.engine.errors import EngineError


class UpstreamError(EngineError):
    """The upstream refused, failed or answered with what cannot be used. The message repeats nothing that it said."""

    code = "upstream_failed"
