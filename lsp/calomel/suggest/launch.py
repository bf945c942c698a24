"""Which server an editor window talks to: the configured one, else a running one, else one that is started now."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from calomel.suggest.completer import Completer


class ServerWish(Protocol):
    """What the user wants of the server; `calomel.workspace.settings.ServerSettings` is one."""

    @property
    def url(self) -> str | None:
        """Of a server to use as it is; None to share one of this machine."""

    @property
    def token(self) -> str | None:
        """For `url`."""

    @property
    def token_file(self) -> Path | None:
        """A file that holds the token for `url`."""

    @property
    def model(self) -> Path | None:
        """Checkpoint folder; None for the shipped one."""

    @property
    def device(self) -> str:
        """`cpu`, `cuda` or `cuda:N`."""

    @property
    def idle_minutes(self) -> float:
        """After which a started server ends by itself."""


async def connect(settings: ServerWish) -> Completer:
    """A completer for these settings; returns at once, and finds or starts the server in the background.

    `info()` of it waits until the model is loaded, and raises why it is not.

    Raises CompleterError for settings that cannot work, such as a token file that is not there.
    """
    raise NotImplementedError
