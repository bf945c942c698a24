"""What a subcommand fails with; `calomel.cli.main` turns it into one line on stderr and an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class CommandError(Exception):
    """The command could not do its work; the message says what happened and what to do."""

    exit_code: ClassVar[int] = 1


class InputError(CommandError):
    """The user named a file, a place or an option that cannot be used; the message names it."""

    exit_code = 2


@contextmanager
def engine_errors_reported() -> Iterator[None]:
    """Turn the engine's exceptions into a `CommandError`: input that it refuses ends with exit status 2.

    Imports the engine, and torch with it: enter it where they are needed anyway.
    """
    from calomel.engine.errors import CheckpointError, EngineError, InvalidRequestError
    from calomel.prompts.tokenizer import TokenizerError

    try:
        yield
    except (CheckpointError, InvalidRequestError, TokenizerError) as error:
        raise InputError(str(error)) from error
    except EngineError as error:
        raise CommandError(f"{error} ({error.code})") from error


def check_device(name: str) -> None:
    """Raises InputError when torch cannot use the device `name`; the message gives torch's reason. Imports torch."""
    if name == "cpu":
        return
    import torch

    try:
        torch.empty(0, device=name)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"--device {name} cannot be used here: {reason}. Without the option Calomel runs on the CPU"
        ) from error
