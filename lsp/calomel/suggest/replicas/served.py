"""A replica as Ray Serve starts it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from calomel.suggest.replicas.replica import Opening, Replica, open_model
from calomel.suggest.replicas.wire import Data


class ServedReplica(Replica):
    """Opens the model in the process that Ray Serve made for it.

    Args:
        opening: the fields of an `Opening`.
    """

    def __init__(self, opening: Mapping[str, Any]) -> None:
        chosen = Opening(**opening)
        if chosen.alone:
            listen_here()
        super().__init__(open_model(chosen))

    def about(self) -> Data:
        """What it is doing, and who and where it is."""
        from ray import serve
        from ray.runtime_context import get_runtime_context

        node = get_runtime_context().get_node_id()[:8]
        return {**super().about(), "id": serve.get_replica_context().replica_id.unique_id, "node": node}


def listen_here() -> None:
    """Have Ray Serve's own port listen on 127.0.0.1; called in a replica's process before it is opened.

    Ray Serve 2.60 opens it on every address of the machine, asks no token there, and unpacks whatever comes. Nobody
    uses it here. Raises AttributeError where Ray Serve has changed: then no replica is started.
    """
    replica: Any = import_module("ray.serve._private.replica")
    add = replica.add_port_to_grpc_server

    def add_here(server: Any, address: str) -> int:
        return int(add(server, address.replace("[::]", "127.0.0.1")))

    replica.add_port_to_grpc_server = add_here
