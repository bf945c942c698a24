"""The entry point: runs a command line, and turns errors into exit statuses."""

from __future__ import annotations

import errno
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Final

from calomel.storage import ENDING

# Exit statuses of commands that another program starts and ends; they apply from the first moment on.
_ENDED: Final = {"lsp": 1, "serve": 0}
_INTERRUPTED: Final = 130  # 128 + SIGINT, as shells expect
_QUICK: Final = (["lsp"], ["lsp", "--stdio"])
# By package, the extra that brings it (pyproject.toml).
_EXTRAS: Final = {
    "gguf": "gguf",
    "llama_cpp": "peers",
    "ray": "cluster",
    "scipy": "bench",
    "transformers": "gguf",
    "zstandard": "bench",
}
_TRAINING: Final = {"corpus", "edits", "shards", "train"}
# Another server can have their model.
_ASKING: Final = {"calibrate", "fill", "replay", "try"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line `arguments` (default: the process's own); always raises SystemExit.

    Exit status 0: done. 1: the work failed. 2: the command line, or something that it names, cannot be used.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words and words[0] in _ENDED:
        _end_in_order(_ENDED[words[0]])
    if words in _QUICK:
        _serve_editor()
    from calomel.cli.app import program

    try:
        status = program()(args=words, prog_name="calomel", standalone_mode=False)
    except ModuleNotFoundError as error:
        name = error.name or ""
        if name.startswith("calomel"):
            raise
        _report(*_missing(name, words))
        raise SystemExit(1) from error
    except OSError as error:
        # A folder that is not ours, a full disk (whose error may not name the file): no case for a traceback.
        if error.filename is None and error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        _report(f"{where}{error.strerror}")
        named_wrongly = isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError)
        raise SystemExit(2 if named_wrongly else 1) from error
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    except Exception as error:
        status = _reported(error)
        if status is None:
            raise
        raise SystemExit(status) from error
    raise SystemExit(status if isinstance(status, int) else 0)


def _reported(error: Exception) -> int | None:
    """Report an error that Calomel expects; returns the exit status, None for a fault of the program."""
    from calomel.cli.output import exit_code_of

    if type(error).__name__ == "NoArgsIsHelpError":
        from calomel.cli.output import say

        say(str(error))
        return 0
    if hasattr(error, "format_message"):  # typer's, for a command line that it cannot read
        command = getattr(getattr(error, "ctx", None), "command_path", "calomel")
        _report(_in_our_words(error.format_message().rstrip(".")), f"{command} -h")
        return 2
    status = exit_code_of(error)
    if status is not None:
        _report(str(error), getattr(error, "hint", ""))
    return status


# What the library says of a number, in our words.
_OF_NUMBERS: Final = {
    "Input should be a valid integer, unable to parse string as an integer": "must be a whole number",
    "Input should be a valid number, unable to parse string as a number": "must be a number",
    "Input should be greater than or equal to": "must be at least",
    "Input should be less than or equal to": "must be at most",
}


def _in_our_words(text: str) -> str:
    for theirs, ours in _OF_NUMBERS.items():
        text = text.replace(theirs, ours)
    text = text.replace("invalid value for '", "").replace("Invalid value for '", "").replace("': must", " must")
    return text[:1].lower() + text[1:]


def _missing(package: str, words: Sequence[str]) -> tuple[str, str]:
    """What to say of a package that the command needs and nobody installed, and how to get it."""
    from calomel.infer.extras import ENGINE, NO_MODEL, installing_engine, without_model

    top = package.partition(".")[0]
    if top in ENGINE:
        if not _ASKING.isdisjoint(words[:1]):
            return NO_MODEL, without_model()
        return f"the package {package} is missing", installing_engine()
    extra = _EXTRAS.get(top)
    if extra == "bench" and not _TRAINING.isdisjoint(words[:1]):
        extra = "train"
    how = f"install Calomel's extra `{extra}`: see docs/install.md#extras" if extra else "install Calomel again"
    return f"the package {package} is missing", how


# Where an error's text ends with a command.
_REMEDY: Final = ": calomel "


def _report(what: str, hint: str = "") -> None:
    """What happened, and what to do about it."""
    from calomel.cli.output import say

    if not hint and _REMEDY in what:
        what, _, hint = what.rpartition(_REMEDY)
        hint = f"calomel {hint}"
    # It may name what a file holds, such as a tensor.
    say(f"error: {what}", err=True)
    if hint:
        say(f"try: {hint}", err=True)


def _serve_editor() -> None:
    """An editor waits for its server at each start: do not import the other commands."""
    try:
        from calomel.lsp.server import run_stdio

        run_stdio()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None


def _end_in_order(status: int) -> None:
    """End with `status` on SIGTERM and SIGHUP, until a handler with more to clean up takes over."""

    def leave(_: int, __: FrameType | None) -> None:
        raise SystemExit(status)

    for number in ENDING:
        # The parent may have them ignored, as `nohup` does; only the main thread has signals.
        if signal.getsignal(number) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(number, leave)
