"""GET /metrics: what the server counts, for Prometheus. It wants the token like every other route."""

from __future__ import annotations

from fastapi import Request
from prometheus_client import generate_latest
from starlette.responses import Response

from calomel.server.access import protected_router
from calomel.server.door import door_of

# Of Prometheus' text format.
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

router = protected_router()


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Prometheus' text format."""
    return Response(generate_latest(door_of(request).metrics.registry), headers={"content-type": MEDIA_TYPE})
