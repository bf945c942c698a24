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
        method, asks = message.get("method"), "id" in message
        begins = method == "initialize"
        if method == "exit" or (self.state is State.RUNNING and not begins) or (self.state is State.NEW and begins):
            # As a notification, `initialize` begins nothing.
            return asks or not begins
        if not asks or method is None:
            # Answers to our own requests may still come after a shutdown; nobody waits for them.
            return False
        if self.state is State.NEW:
            return Malformed(ErrorCode.SERVER_NOT_INITIALIZED, "The first request is initialize.", message["id"])
        happened = "initialized already" if self.state is State.RUNNING else "shut down"
        return Malformed(ErrorCode.INVALID_REQUEST, f"The session was {happened}.", message["id"])

    @property
    def exit_code(self) -> int:
        """0 after a shutdown, 1 without."""
        return 0 if self.state is State.SHUT_DOWN else 1
