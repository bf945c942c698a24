"""Messages made from the types of the specification: one valid example of each kind, and wrong ones derived from it."""

from __future__ import annotations

import copy
import types as builtin_types
import typing
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import Any

import attrs
from lsprotocol import converters, types

DEPTH = 6
WRONG: tuple[Any, ...] = (None, True, -1, 7, 1.5, 2**40, "text", "", [], [None], {}, {"unexpected": 1})

REQUESTS = (
    types.TEXT_DOCUMENT_INLINE_COMPLETION,
    types.TEXT_DOCUMENT_COMPLETION,
    types.TEXT_DOCUMENT_CODE_ACTION,
    types.WORKSPACE_EXECUTE_COMMAND,
)
NOTIFICATIONS = (
    types.INITIALIZED,
    types.SET_TRACE,
    types.CANCEL_REQUEST,
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL,
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_SAVE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
)
URI = "file:///workspace/a.py"
POSITION = {"line": 0, "character": 0}
EDIT = {
    "textDocument": {"uri": URI, "version": 1},
    "position": POSITION,
    "context": {"triggerKind": 2},
    "diagnostics": [{"severity": "error", "message": "x", "range": {"start": POSITION, "end": POSITION}, "code": 1}],
}
ITEM = {"insertText": "x", "range": None, "command": {"title": "", "command": "calomel.accept", "arguments": ["id"]}}
# Methods of Copilot's protocol, which no specification types.
CUSTOM_REQUESTS: dict[str, Any] = {
    "textDocument/copilotInlineEdit": EDIT,
    "checkStatus": {"localChecksOnly": True},
    "signIn": {},
    "signInInitiate": {},
    "signOut": {},
    "getVersion": {},
    "setEditorInfo": {"editorInfo": {"name": "x", "version": "1"}, "editorPluginInfo": {"name": "y", "version": "1"}},
}
CUSTOM_NOTIFICATIONS: dict[str, Any] = {
    "textDocument/didShowCompletion": {"item": ITEM},
    "textDocument/didPartiallyAcceptCompletion": {"item": ITEM, "acceptedLength": 1},
    "textDocument/didShowInlineEdit": {"item": {"command": {"arguments": ["id"]}}},
    "textDocument/didFocus": {"textDocument": {"uri": URI}},
}
CUSTOM = CUSTOM_REQUESTS | CUSTOM_NOTIFICATIONS


@lru_cache
def valid(method: str) -> Any:
    """The params of `method`, with every optional field."""
    if method in CUSTOM:
        return CUSTOM[method]
    kind = types.METHOD_TO_TYPES[method][2]
    params = converters.get_converter().unstructure(_example(kind, DEPTH))
    return params | {"command": "calomel.status"} if method == types.WORKSPACE_EXECUTE_COMMAND else params


def wrong(params: Any) -> Iterator[tuple[str, Any]]:
    """`params` with each part in turn left out or replaced by something else, each with its description."""
    for value in WRONG:
        yield f"params = {value!r}", value
    for path in _paths(params):
        name = ".".join(map(str, path))
        if isinstance(path[-1], str):
            changed = copy.deepcopy(params)
            del _parent(changed, path)[path[-1]]
            yield f"without {name}", changed
        for value in WRONG:
            changed = copy.deepcopy(params)
            _parent(changed, path)[path[-1]] = value
            yield f"{name} = {value!r}", changed


def _paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*above, key)
        yield from _paths(inner, (*above, key))


def _parent(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        value = value[key]
    return value


def _example(kind: Any, depth: int) -> Any:
    if attrs.has(kind):
        hints = typing.get_type_hints(kind)
        return kind(
            **{
                field.name: _example(hints[field.name], depth - 1)
                for field in attrs.fields(kind)
                if field.init and (depth > 0 or field.default is attrs.NOTHING)
            }
        )
    origin = typing.get_origin(kind)
    if origin in {typing.Union, builtin_types.UnionType}:
        choices = [one for one in typing.get_args(kind) if one is not type(None)]
        return _example(choices[0], depth)
    if origin is not None:
        arguments = typing.get_args(kind)
        if len(arguments) == 2:
            return {}
        return [_example(arguments[0], depth - 1)] if depth > 0 else []
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    return {str: URI, int: 0, bool: False, float: 0.0}.get(kind, {})
