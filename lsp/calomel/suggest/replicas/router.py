"""Which replica a session is answered by. Imported by Ray Serve alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter


class SessionRouter(ConsistentHashRouter):  # type: ignore[misc]  # Ray is not checked
    """A ring of replicas, which asks nobody how busy he is.

    Ray Serve's own probes a replica before it sends it something, and sends nothing while a busy one does not answer in
    time: on a machine with too much to do, requests of a lost replica were found waiting for minutes. Here a replica
    takes whatever comes, and its engine knows who is in a hurry.
    """

    async def _select_from_candidate_replicas(self, candidates: Sequence[Any], backoff_index: int) -> Any:
        """The first of them: they are in the order of the ring."""
        del backoff_index
        return candidates[0] if candidates else None
