"""The server as a Ray Serve application: `serve run calomel.server.cluster:app replicas=4`.

Each replica is the whole application with its own model; Ray Serve starts them, replaces lost ones, and keeps requests
with the same `X-Session-ID` on one of them, where their contexts are cached. Needs the extra `cluster`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from starlette.types import ASGIApp

from calomel.server.app import create_app
from calomel.server.run import allowed_tokens, open_model, turn_off_libraries
from calomel.server.settings import load
from calomel.storage import processors

# The application has its own queue.
_MOST_ONGOING: Final = 100_000


def app(arguments: Mapping[str, str]) -> serve.Application:
    """The application for `serve run`.

    Args:
        arguments: `replicas`, the number of processes with the model, and settings of `calomel serve` by their names.

    Raises:
        StartError: a setting cannot be used.
    """
    given = dict(arguments)
    replicas = int(given.pop("replicas", "1"))
    settings = load(given).settings
    settings = settings.model_copy(update={"threads": settings.threads or max(1, processors() // replicas)})
    tokens, _, _ = allowed_tokens(settings, terminal=False)

    def build() -> ASGIApp:
        turn_off_libraries()
        return create_app(settings, partial(open_model, settings), tokens)

    deployment = serve.deployment(
        serve.ingress(build)(),
        name="calomel",
        num_replicas=replicas,
        max_ongoing_requests=_MOST_ONGOING,
        ray_actor_options={"num_gpus": 1} if settings.device.startswith("cuda") else {},
        request_router_config=RequestRouterConfig(request_router_class=ConsistentHashRouter),
    )
    return deployment.bind()
