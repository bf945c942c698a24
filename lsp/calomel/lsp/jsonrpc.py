"""JSON-RPC 2.0 as the language server protocol uses it: one body to its messages, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

VERSION: Final = "2.0"


class ErrorCode(IntEnum):
    """JSON-RPC's codes and those that the protocol adds (specification 3.18, "ErrorCodes", "LSPErrorCodes")."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    SERVER_NOT_INITIALIZED = -32002
    REQUEST_CANCELLED = -32800


Id = int | str
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Malformed:
    """What is no message: the answer to send."""

    code: ErrorCode
    reason: str
    id: Id | None = None


class NotJsonError(ValueError):
    """The body is no JSON text in UTF-8."""


def parse(body: bytes) -> Iterator[Message | Malformed]:
    """The messages of a body, one or a batch, each checked for the shape that JSON-RPC asks for.

    The language server protocol knows no batches; the messages of one are handled, and answered, one by one.

    Raises NotJsonError.
    """
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotJsonError(type(error).__name__) from None
    if not isinstance(value, list):
        yield _checked(value)
    elif not value:
        yield Malformed(ErrorCode.INVALID_REQUEST, "an empty batch")
    else:
        for item in value:
            yield _checked(item)


def result(message_id: Id, value: Any) -> Message:
    """An answer."""
    return {"jsonrpc": VERSION, "id": message_id, "result": value}


def error(message_id: Id | None, code: int, reason: str) -> Message:
    """An answer that something is wrong. `reason` never quotes the user's text."""
    return {"jsonrpc": VERSION, "id": message_id, "error": {"code": int(code), "message": reason}}


def notification(method: str, params: Any) -> Message:
    """A message that wants no answer."""
    return {"jsonrpc": VERSION, "method": method, "params": params}


def encode(message: Mapping[str, Any]) -> bytes:
    """Headers and body. ASCII, so that a lone surrogate in a text can not break the stream."""
    body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def is_id(value: object) -> bool:
    """Whether a request may carry it: an integer or a string."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def _checked(value: object) -> Message | Malformed:
    if not isinstance(value, dict):
        return Malformed(ErrorCode.INVALID_REQUEST, "A message is a JSON object.")
    message_id = value.get("id")
    known = message_id if is_id(message_id) else None
    problem = _problem(value)
    return Malformed(ErrorCode.INVALID_REQUEST, problem, known) if problem else value


def _problem(message: Message) -> str | None:
    if message.get("jsonrpc") != VERSION:
        return 'A message says "jsonrpc": "2.0".'
    if "method" in message:
        if not isinstance(message["method"], str):
            return "A method is a string."
        if "id" in message and not is_id(message["id"]):
            return "The id of a request is an integer or a string."
        return None
    if "result" not in message and "error" not in message:
        return "A message has a method, a result or an error."
    return None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)  # NaN and the infinities are no JSON
