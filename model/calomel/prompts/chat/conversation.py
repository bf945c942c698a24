"""The data of a conversation, in the words of the clients: messages, functions that may be called, and calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A function that the model wants called. `arguments` is JSON, as the model or the client wrote it."""

    name: str
    arguments: str
    id: str = ""

    def described(self) -> dict[str, Any]:
        """As templates read it; they write arguments as JSON themselves, so what is JSON is given as data."""
        try:
            arguments = json.loads(self.arguments)
        except ValueError:
            arguments = self.arguments
        function = {"name": self.name, "arguments": arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        role: who speaks: system, user, assistant or tool.
        content: the text.
        name: of the speaker, or of the function whose answer this is.
        calls: that an assistant made.
        call_id: of the call that this answers.
    """

    role: str
    content: str = ""
    name: str | None = None
    calls: tuple[Call, ...] = ()
    call_id: str | None = None

    def described(self) -> dict[str, Any]:
        """As templates read it: what is not there is not defined."""
        found: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.name is not None:
            found["name"] = self.name
        if self.calls:
            found["tool_calls"] = [call.described() for call in self.calls]
        if self.call_id is not None:
            found["tool_call_id"] = self.call_id
        return found


@dataclass(frozen=True, slots=True)
class Function:
    """A function that may be called: its arguments are an object that the schema `parameters` allows."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    strict: bool = False

    def described(self) -> dict[str, Any]:
        """As templates read it."""
        function: dict[str, Any] = {"name": self.name, "description": self.description}
        if self.parameters is not None:
            function["parameters"] = self.parameters
        return {"type": "function", "function": function}
