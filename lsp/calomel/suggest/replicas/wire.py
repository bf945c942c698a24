"""Requests and answers as plain data: numbers, text, bytes, and tuples, lists and mappings of these.

Nothing here packs objects: whoever carries the data between processes finds nothing in it that could run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, asdict, fields
from typing import Any, Final, Literal, Protocol

import numpy as np

from calomel.engine.errors import EngineError, InvalidRequestError, RequestFailedError
from calomel.engine.request import CanvasState, Constraint, Priority, Request, Result, SamplingParams
from calomel.prompts.grammar import AnswerForm, GrammarCompiler, GrammarConstraint
from calomel.prompts.token_healing import HealingConstraint, TokenHealing
from calomel.prompts.tokenizer import TextTokenizer
from calomel.suggest.completer import READINGS, Ending, Patience, Reading

Data = dict[str, Any]
Kind = Literal["state", "result", "error"]
# Which of the requests that were sent together, what it is, and the thing itself.
Message = tuple[int, Kind, Data]

_IDS: Final = "<u4"
_TOKENS: Final = frozenset({"context", "given", "guess", "suffix"})


class Model(Protocol):
    """What reading a request needs of the model; `calomel.suggest.filler.Filler` is one."""

    @property
    def tokenizer(self) -> TextTokenizer:
        """Of its checkpoint."""

    @property
    def grammars(self) -> GrammarCompiler:
        """Makes constraints for its tokenizer."""

    def until(self, reading: Reading, stop: Sequence[str]) -> Ending | None:
        """When an answer is over."""


def request_data(request: Request) -> Data:
    """All of `request` but its deadline, which is another number on every clock.

    Raises:
        InvalidRequestError: it has a function or a constraint that is no data.
    """
    data: Data = {}
    for each in fields(Request):
        value = getattr(request, each.name)
        if each.name == "deadline" or (each.default is not MISSING and value == each.default):
            continue
        data[each.name] = _WRITERS.get(each.name, _same)(value)
    return data


def read_request(data: Data, model: Model, deadline: float | None) -> Request:
    """The request; compiles its grammar, which takes some milliseconds.

    Raises:
        GrammarError, TypeError, ValueError: it was written by another version.
    """
    read = {name: _READERS.get(name, _same)(value) for name, value in data.items()}
    if "until" in read:
        read["until"] = _read_until(read["until"], model)
    if "constraint" in read:
        read["constraint"] = _read_constraint(read["constraint"], model)
    return Request(**read, deadline=deadline)


def result_data(result: Result) -> Data:
    """All of `result`."""
    return {each.name: getattr(result, each.name) for each in fields(Result)}


def read_result(data: Data) -> Result:
    """The result."""
    return Result(**data)


def state_data(state: CanvasState) -> Data:
    """All of `state`."""
    return {each.name: getattr(state, each.name) for each in fields(CanvasState)}


def read_state(data: Data) -> CanvasState:
    """The state."""
    return CanvasState(**data)


def error_data(error: Exception) -> Data:
    """What is told of `error`: of one that nobody declared its type alone, for its words may quote a user."""
    if isinstance(error, EngineError):
        return {"code": error.code, "message": str(error)}
    return {"code": RequestFailedError.code, "message": f"a replica failed: {type(error).__name__}"}


def read_error(data: Data) -> EngineError:
    """The error, of the class that has its code."""
    kinds = {kind.code: kind for kind in _kinds(EngineError)}
    return kinds.get(data["code"], RequestFailedError)(data["message"])


def _kinds(kind: type[EngineError]) -> list[type[EngineError]]:
    return [kind, *(each for below in kind.__subclasses__() for each in _kinds(below))]


def _same(value: Any) -> Any:
    return value


def _ids(value: Sequence[int] | None) -> bytes | None:
    return None if value is None else np.asarray(value, dtype=_IDS).tobytes()


def _read_ids(value: bytes | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(np.frombuffer(value, dtype=_IDS).tolist())


def _until(value: Callable[[Sequence[int]], bool]) -> Data:
    if isinstance(value, Ending):
        return {"reading": value.reading, "stop": value.stop}
    if isinstance(value, Patience):
        return {"times": value.times}
    raise InvalidRequestError("until is a function, which a replica cannot be sent; use an Ending")


def _read_until(value: Data, model: Model) -> Ending | Patience | None:
    if "times" in value:
        return Patience(value["times"])
    (reading,) = (each for each in READINGS if each == value["reading"])
    return model.until(reading, value["stop"])


def _constraint(value: object) -> Data:
    if isinstance(value, GrammarConstraint):
        return {"grammar": value.form.grammar}
    if isinstance(value, HealingConstraint):
        return {"begins": value.text, "least": value.least, "most": value.most}
    raise InvalidRequestError("constraint is an object, which a replica cannot be sent; use a grammar")


def _read_constraint(value: Data, model: Model) -> Constraint:
    if "begins" in value:
        return TokenHealing(value["begins"]).constraint(model.tokenizer, least=value["least"], most=value["most"])
    return model.grammars.compile(AnswerForm(value["grammar"]))


_WRITERS: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(_TOKENS, _ids),
    "frozen": dict,
    "sampling": asdict,
    "priority": int,
    "until": _until,
    "constraint": _constraint,
}
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(_TOKENS, _read_ids),
    "sampling": lambda value: SamplingParams(**value),
    "priority": Priority,
}
