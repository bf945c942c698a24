"""Exceptions in logs, as type and place since their messages may quote the user's text; and in messages to a user."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def describe(error: BaseException | None, most: int = 6) -> str:
    """Type and innermost places of an exception, at most `most` of them."""
    if error is None:
        return "no exception"
    frames = traceback.extract_tb(error.__traceback__)[-most:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{type(error).__name__} at {places}" if places else type(error).__name__


def cause(error: BaseException) -> str:
    """What happened, for a person's eyes: the message without its type. Not for logs: it may quote the user's text."""
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing" if error.args else "a field is missing"
    return str(error) or type(error).__name__


@contextmanager
def dead_threads_logged(log: logging.Logger) -> Iterator[None]:
    """While the context is open, log each thread that ends with an exception."""

    def died(args: threading.ExceptHookArgs) -> None:
        name = "?" if args.thread is None else args.thread.name
        log.error("the thread %s ended with %s", name, describe(args.exc_value, 1))

    before, threading.excepthook = threading.excepthook, died
    try:
        yield
    finally:
        threading.excepthook = before
