"""What may be asked when: before `initialize`, between it and `shutdown`, and afterwards."""

from __future__ import annotations

from enum import Enum, auto

from calomel.lsp.jsonrpc import ErrorCode, Malformed, Message


class State(Enum):
    """Where the session stands."""

    NEW = auto()
    RUNNING = auto()
    SHUT_DOWN = auto()


class Lifecycle:
    """Judges each message by the session's state (specification 3.18, "Server lifecycle")."""

    def __init__(self) -> None:
        self.state = State.NEW

    def admit(self, message: Message) -> Malformed | bool:
        """Whether to handle the message: yes, no without a word, or no with this answer."""
        method = message.get("method")
        asks = "id" in message
        if self.state is State.RUNNING:
            if method == "initialize":
                return self._refuse(message, "The session is initialized already.") if asks else False
            return True
        if method == "exit":
            return True
        if not asks or method is None:
            # Answers to our own requests may still come after a shutdown; nobody waits for them.
            return False
        if self.state is State.NEW:
            if method == "initialize":
                return True
            return Malformed(ErrorCode.SERVER_NOT_INITIALIZED, "The first request is initialize.", message["id"])
        return self._refuse(message, "The session was shut down.")

    @property
    def exit_code(self) -> int:
        """0 after a shutdown, 1 without."""
        return 0 if self.state is State.SHUT_DOWN else 1

    @staticmethod
    def _refuse(message: Message, reason: str) -> Malformed:
        return Malformed(ErrorCode.INVALID_REQUEST, reason, message["id"])
