"""Keeps the process on this machine: `calomel serve --offline`.

The server itself opens no connection. This holds for every library in the process, too: Python reports each attempt to
connect or to look a name up before it is made (PEP 578), and what is reported here is refused.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from calomel.suggest.loopback import is_loopback

# Read when those libraries are imported, so they are set before.
_SWITCHES: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


class OfflineError(OSError):
    """Something in this process tried to reach another machine."""


def turn_off_libraries() -> None:
    """Tell libraries that could reach out not to: the server never asks them to."""
    os.environ.update(_SWITCHES)


def refuse_connections() -> None:
    """From now on, and for the rest of the process, refuse every connection beyond loopback."""
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in {"socket.connect", "socket.sendto"}:
        address = arguments[1]
        # Sockets of the file system have a path for an address.
        if isinstance(address, tuple) and not is_loopback(str(address[0])):
            raise OfflineError("the server is offline: it connects to no other machine")
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        host = arguments[0]
        name = host.decode("latin-1") if isinstance(host, bytes) else str(host or "localhost")
        if not _is_address(name) and not is_loopback(name):
            raise OfflineError("the server is offline: it looks up no name")


def _is_address(name: str) -> bool:
    """Whether nobody has to be asked for it."""
    import ipaddress

    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
