"""What the server tells the client unasked: how the model is, why it is silent, and what the user must know."""

from __future__ import annotations

import logging
from typing import Final, Literal

from lsprotocol import types

from calomel.lsp.client import Client
from calomel.lsp.protocol import EditorLink
from calomel.suggest.silence import Silence, SilenceReason

LOG: Final = logging.getLogger(__name__)

State = Literal["ready", "loading", "off", "error"]

# The words of Copilot's protocol for ours.
# Silences that last until the user does something about them, and that he may not have asked for.
_LASTING: Final = frozenset({SilenceReason.IGNORED_PATH, SilenceReason.OFF_LANGUAGE})
_KINDS: Final = {"ready": "Normal", "loading": "Normal", "off": "Inactive", "error": "Warning"}


class Notices:
    """Says each thing in the words that this client knows, and no word twice in a row."""

    def __init__(self, link: EditorLink, client: Client) -> None:
        self._link = link
        self._client = client
        self._last: tuple[State, str] | None = None
        self._warned: set[str] = set()

    def status(self, state: State, message: str) -> None:
        """How the model is."""
        if self._last == (state, message):
            return
        self._last = (state, message)
        LOG.info("%s: %s", state, message)
        if self._client.extensions:
            self._link.protocol.notify("calomel/status", {"state": state, "message": message})
        elif state == "error":
            self.warn(f"Calomel: {message.rstrip('.')}; `calomel doctor` says more.")
        if self._client.speaks_copilot:
            self._link.protocol.notify(
                "didChangeStatus", {"busy": state == "loading", "kind": _KINDS[state], "message": message}
            )

    def silence(self, uri: str, kind: Literal["fill", "edit"], silence: Silence) -> None:
        """Why nothing is shown. Not for a question that a newer one replaced: the newer one's answer follows.

        A client without a place for it is told what would last.
        """
        if self._client.extensions and silence.reason is not SilenceReason.SUPERSEDED:
            self._link.protocol.notify(
                "calomel/silence",
                {"uri": uri, "kind": kind, "reason": silence.reason.value, "message": silence.message},
            )
        elif not self._client.extensions and silence.reason in _LASTING:
            self._show(f"Calomel: {silence.message}", types.MessageType.Info)

    def warn(self, message: str) -> None:
        """Show a sentence to the user, the same one once a session."""
        self._show(message, types.MessageType.Warning)

    def _show(self, message: str, kind: types.MessageType) -> None:
        if message in self._warned:
            return
        self._warned.add(message)
        LOG.warning("%s", message)
        self._link.window_show_message(types.ShowMessageParams(type=kind, message=message))
