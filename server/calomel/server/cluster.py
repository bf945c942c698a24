"""The server as a Ray Serve application: `serve run calomel.server.cluster:app replicas=4`.

Each replica is the whole application with its own model; Ray Serve starts them, replaces lost ones, and keeps requests
with the same `X-Session-ID` on one of them, where their contexts are cached. Needs the extra `cluster`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from starlette.types import ASGIApp

from calomel.server.errors import StartError
from calomel.server.run import allowed_tokens, build_app, turn_off_libraries
from calomel.server.settings import load
from calomel.server.upstream import upstream_of
from calomel.storage import processors
from calomel.weights.folders import folder_of

# The application has its own queue.
_MOST_ONGOING: Final = 100_000
_OF_RAY: Final = frozenset(
    {"host", "port", "socket", "allow_remote", "tls_cert", "tls_key", "runtime_file", "idle_minutes", "max_connections",
     "receive_seconds", "shutdown_seconds"}
)  # fmt: skip


def app(arguments: Mapping[str, str]) -> serve.Application:
    """The application for `serve run`.

    Args:
        arguments: `replicas`, the number of processes with the model, and settings of `calomel serve` by their names.

    Raises:
        StartError: a setting cannot be used.
        ModelNameError: no model has the name that was given.
    """
    given = dict(arguments)
    replicas = int(given.pop("replicas", "1"))
    settings = load(given).settings
    others = next((name for name in given if name in _OF_RAY), None)
    if others is not None:
        raise StartError(f"{others} has no effect here: Ray Serve listens, see its `http_options`")
    if settings.fresh_token:
        raise StartError("nobody would learn the fresh-token of a replica: set token or token-file")
    if settings.offline:
        raise StartError("offline does not hold for Ray Serve, whose processes connect to each other: unset it")
    settings = replace(settings, model=folder_of(settings.model))
    # What is wrong with it is told here rather than by every replica.
    upstream_of(settings)
    settings = replace(settings, threads=settings.threads or max(1, processors() // replicas))
    tokens, _, _ = allowed_tokens(settings, terminal=False)

    def build() -> ASGIApp:
        turn_off_libraries()
        return build_app(settings, tokens)

    deployment = serve.deployment(
        serve.ingress(build)(),
        name="calomel",
        num_replicas=replicas,
        max_ongoing_requests=_MOST_ONGOING,
        ray_actor_options={"num_gpus": 1} if settings.device.startswith("cuda") else {},
        request_router_config=RequestRouterConfig(request_router_class=ConsistentHashRouter),
    )
    return deployment.bind()
