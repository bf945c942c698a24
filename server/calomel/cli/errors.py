"""The errors of subcommands; `calomel.cli.main` turns them into one line on stderr and an exit status."""

from __future__ import annotations

from typing import ClassVar, Final

# Errors of other packages for something named on the command line that cannot be used. By name, since importing all of
# them would load PyTorch in every command.
_NAMED_WRONGLY: Final = frozenset(
    {
        "AlignmentError",
        "CalibratorError",
        "CheckpointError",
        "ComparisonError",
        "InvalidRequestError",
        "LogError",
        "ModelNameError",
        "SampleError",
        "SettingsError",
        "TokenizerError",
        "TrainingConfigError",
    }
)


class CommandError(Exception):
    """The command failed; the message says what happened and what to do."""

    exit_code: ClassVar[int] = 1


class InputError(CommandError):
    """The user named a file, a place or an option that cannot be used; the message names it."""

    exit_code = 2


def exit_code_of(error: Exception) -> int | None:
    """The exit status of an error that Calomel expects; None for a fault of the program."""
    if isinstance(error, CommandError):
        return error.exit_code
    ours = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("calomel.")}
    return (2 if ours & _NAMED_WRONGLY else 1) if ours else None
