"""The JSON of requests and answers of `POST /calomel/v1/complete`, in both directions.

Decoding checks types and the limits declared with the fields in `calomel.infer.completer` and
`calomel.prompts.parts`, names the offending field and never quotes its value. Unknown fields are ignored; a message of
another protocol version is refused. The same reader is used for other files of ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, get_args

import msgspec

from calomel.infer.completer import (
    PROTOCOL_VERSION,
    Candidate,
    CompleteAnswer,
    CompleteRequest,
    Kind,
    ModelInfo,
)

COMPLETE_PATH: Final = "/calomel/v1/complete"
INFO_PATH: Final = "/calomel/v1/info"
HEALTH_PATH: Final = "/health"

# The smallest probability of float32 has a logarithm of -104. JSON has no infinity.
_LEAST_LOG_PROB: Final = -1e4
_PLACE: Final = re.compile(r"(?P<problem>.*?)(?: - at `\$\.?(?P<field>.*)`)?", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")

Value = TypeVar("Value")


class FieldError(ValueError):
    """A field is missing or invalid.

    Attributes:
        field: dotted path to it, as in `parts.related.3.text`; empty for the whole document.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field


class ProtocolError(FieldError):
    """The other side has another version of the protocol."""

    def __init__(self) -> None:
        super().__init__(
            "protocol", f"must be {PROTOCOL_VERSION}; upgrade the older of editor and server, then restart"
        )


@dataclass(frozen=True, slots=True)
class _Protocol:
    protocol: int


def read_json(data: bytes | str, kind: type[Value]) -> Value:
    """The JSON document as a `kind`, any type that msgspec reads. Raises FieldError; its cause would quote the text."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise _field_error(str(error)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise FieldError("", "not valid JSON") from None


def encode(value: CompleteRequest | CompleteAnswer | ModelInfo) -> bytes:
    """A value as a JSON document. Raises FieldError where a text is not valid Unicode."""
    if isinstance(value, CompleteAnswer):
        value = replace(value, candidates=tuple(map(_finite, value.candidates)))
    try:
        return b'{"protocol":%d,' % PROTOCOL_VERSION + msgspec.json.encode(value)[1:]
    except UnicodeEncodeError:
        # The original's message and attributes contain the text.
        raise FieldError("", "a text is not valid Unicode") from None


def decode_request(data: bytes | str) -> CompleteRequest:
    """Decode a request. Raises FieldError, ProtocolError."""
    request = decode(data, CompleteRequest)
    region = request.parts.region
    if request.min_tokens > request.max_tokens:
        raise FieldError("min_tokens", "must not be above max_tokens")
    if request.kind == "edit" and region is None:
        raise FieldError("parts.region", "is missing")
    if request.kind == "fill" and region is not None:
        raise FieldError("parts.region", "must be null in a completion")
    if region is not None and region.cursor is not None and not 0 <= region.cursor <= len(region.text):
        raise FieldError("parts.region.cursor", f"must be between 0 and {len(region.text)}")
    return request


def check_request(request: CompleteRequest) -> None:
    """Refuse what `decode_request` would refuse, with the same message. Raises FieldError."""
    decode_request(encode(request))


def decode_info(data: bytes | str) -> ModelInfo:
    """Decode a model's description. Kinds that this version does not know are left out.

    Raises FieldError, ProtocolError.
    """
    values = decode(data, dict[str, Any])
    if isinstance(values.get("kinds"), list):
        values["kinds"] = [kind for kind in get_args(Kind) if kind in values["kinds"]]
    try:
        return msgspec.convert(values, ModelInfo)
    except msgspec.ValidationError as error:
        raise _field_error(str(error)) from None


def decode(data: bytes | str, kind: type[Value]) -> Value:
    """Decode a JSON document of this protocol. Raises FieldError, ProtocolError."""
    if read_json(data, _Protocol).protocol != PROTOCOL_VERSION:
        raise ProtocolError
    return read_json(data, kind)


def _field_error(message: str) -> FieldError:
    """The message of msgspec, without the value that it may quote."""
    match = _PLACE.fullmatch(message)
    problem, field = (message, "") if match is None else (match["problem"], match["field"] or "")
    field = re.sub(r"\[(.*?)\]", r".\1", field).lstrip(".")
    missing = _MISSING.fullmatch(problem)
    if missing is not None:
        return FieldError(f"{field}.{missing[1]}".lstrip("."), "is missing")
    return FieldError(field, "is not a known value" if problem.startswith("Invalid") else problem)


def _finite(candidate: Candidate) -> Candidate:
    end = candidate.end_log_prob
    return replace(
        candidate,
        log_probs=tuple(max(value, _LEAST_LOG_PROB) for value in candidate.log_probs),
        end_log_prob=None if end is None else max(end, _LEAST_LOG_PROB),
    )
