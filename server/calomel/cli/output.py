"""What commands share: their errors, options and consoles, and text without terminal escape sequences.

`calomel.cli.main` turns errors into a line on stderr, one more for what to try, and an exit status.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from calomel.infer.completer import ModelInfo

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
    """The command failed. `what` happened, and `hint` is what to do, where that is not plain."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint


class InputError(CommandError):
    """The user named a file, a place or an option that cannot be used; the message names it."""

    exit_code = 2


def exit_code_of(error: Exception) -> int | None:
    """The exit status of an error that Calomel expects; None for a fault of the program."""
    if isinstance(error, CommandError):
        return error.exit_code
    ours = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith("calomel.")}
    return (2 if ours & _NAMED_WRONGLY else 1) if ours else None


_Made = TypeVar("_Made")


def check_device(name: str) -> str:
    """Raise InputError, with torch's reason, when torch cannot use the device. Imports torch for a GPU."""
    if name == "cpu":
        return name
    from calomel.cli.device_checks import problem_of

    problem = problem_of(name)
    if problem is not None:
        raise InputError(f"--device {name} does not work here: {problem.found}", problem.advice)
    return name


def _found_folder(name: Path | None) -> Path | None:
    """The folder of a model. Raises InputError if there is none."""
    from calomel.weights.folders import ModelNameError, folder_of

    try:
        return folder_of(name)
    except ModelNameError as error:
        raise InputError(str(error)) from error


def word_or_number(option: str, words: Sequence[str], most: float, text: str) -> str | float:
    """One of the words, or a number from 0 to `most`. Raises InputError, naming the option."""
    if text in words:
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= most:
        raise InputError(f"{option} {text!r} is not {', '.join(words)} or a number up to {most:g}")
    return number


def model_info(folder: Path | None) -> ModelInfo:
    """The model in `folder` (None: the shipped one), from its files alone. Raises InputError, OSError."""
    from calomel.infer.in_process import describe

    try:
        return describe(folder)
    except ValueError as error:
        raise InputError(str(error)) from error


def made_of(kind: type[_Made], given: Mapping[str, Any]) -> _Made:
    """A dataclass with those of the `given` values that it has; the others keep their defaults."""
    names = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    values = {name: value for name, value in given.items() if name in names and value not in (None, [])}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


_threshold = partial(word_or_number, "--aggressiveness", ("quiet", "balanced", "eager"), 1.0)

Model: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="MODEL", callback=_found_folder, help="A model's name, folder or GGUF file. Default: nano."),
]


def address(given: str | None) -> str | None:
    """An option's address, with `http://` before a mere host and port."""
    from calomel.infer.remote import with_scheme

    return given if given is None else with_scheme(given)


Device: TypeAlias = Annotated[str, typer.Option(callback=check_device, help="cpu, cuda, cuda:N or mps.")]
Threads: TypeAlias = Annotated[int | None, typer.Option(min=1, help="Processor threads.")]
Quantize: TypeAlias = Annotated[
    Literal["int8"] | None, typer.Option(help="Round weights to eight bits. Default: unchanged.")
]
Aggressiveness: TypeAlias = Annotated[
    # typer has no union of strings and numbers.
    Any,
    typer.Option(metavar="quiet|balanced|eager|P", parser=_threshold, help="How confident Calomel must be."),
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Random seed.")]
Resume: TypeAlias = Annotated[bool, typer.Option(help="Continue an interrupted run.")]
Config: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="Settings file. Default: calomel.toml in your configuration folder.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


FILL_STYLE: Final = "bold green"

# A model can write any byte, and an escape sequence would control the terminal: control characters become pictures.
# What else could hide or reorder text, or cannot be written at all, becomes U+FFFD: C1 controls, directions, halves of
# pairs.
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
_REPLACED = (range(0x80, 0xA0), range(0x202A, 0x202F), range(0x2066, 0x206A), range(0xD800, 0xE000))
_VISIBLE = _PICTURES | {code: 0xFFFD for codes in _REPLACED for code in codes}


_CREDENTIALS: Final = re.compile(r"(\w://)[^\s/?#]*@")
_QUERY: Final = re.compile(r"(\w://[^\s?#]*)\?\S*")


# A command of ours in what a person reads.
_COMMAND: Final = re.compile(
    r"(?<![\w./-])calomel(?= (?:try|fill|serve|lsp|page|doctor|replay|stats|config|editor|models|calibrate|refit|corpus"
    r"|edits|shards|train|bench|-h|--help)\b)"
)


def as_started(text: str) -> str:
    """The text, whose commands can be copied: they name this program as the user started it, unless PATH finds it."""
    return _COMMAND.sub(lambda _: _started(), text)


def _started() -> str:
    started, found = Path(sys.argv[0]), shutil.which("calomel")
    if started.stem != "calomel" or not started.is_file() or (found and started.samefile(found)):
        return "calomel"
    place = os.path.abspath(started)  # noqa: PTH100 (a link keeps its name)
    near = os.path.relpath(place)
    return shlex.quote(place if near.startswith("..") else near if os.sep in near else f".{os.sep}{near}")


def console(*, stderr: bool = False, wrap: bool = False) -> Console:
    """A console that takes text literally; without `wrap`, long lines, such as those of a file, are not broken."""
    from rich.console import Console
    from rich.segment import Segment

    class Visible(Console):
        def render(self, *args: Any, **options: Any) -> Iterable[Segment]:
            for text, style, control in super().render(*args, **options):
                yield Segment(text if control else visible(text), style, control)

        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*(as_started(each) if isinstance(each, str) else each for each in objects), **options)

    return Visible(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=not wrap)


def say(text: str = "", *, err: bool = False, verbatim: bool = False) -> None:
    """Print text that may come from anybody, such as a file's name; `verbatim` is for programs and documents."""
    print(visible(text if verbatim else as_started(text)), file=sys.stderr if err else sys.stdout)


def visible(text: str) -> str:
    """The text with control characters as pictures and plain line ends."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def without_credentials(text: str) -> str:
    """The text, whose addresses show neither a user's name and password nor what follows a question mark."""
    return _QUERY.sub(r"\1", _CREDENTIALS.sub(r"\1", text))


def plural(count: int, noun: str) -> str:
    """A count and what is counted: "1 token", "2 tokens"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def columns(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells, each column as wide as its widest cell."""
    rows = list(rows)
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in padded)


def markdown(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    cells = [titles, ["---"] * len(titles), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


# Makes a table of its titles and rows.
TableForm: TypeAlias = Callable[[Sequence[str], Iterable[Sequence[str]]], str]


def table_form() -> TableForm:
    """What a terminal shows, or else Markdown, from which the documentation is made."""
    return paragraphs if sys.stdout.isatty() else markdown


def paragraphs(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are sentences, for a terminal: a paragraph for each row, in the terminal's width."""
    within = partial(fill, width=shutil.get_terminal_size().columns, initial_indent="  ", subsequent_indent="    ")
    told = []
    for first, *rest in rows:
        named = (f"{title}: {cell}" for title, cell in zip(titles[1:], rest, strict=True) if cell)
        told.append("\n".join([first, *map(within, named)]))
    return "\n\n".join(told).replace("`", "") + "\n"


def excerpt(
    out: Console, prefix: str, middle: str, suffix: str, *, style: str = FILL_STYLE, before: int = 6, after: int = 4
) -> Text:
    """`middle` between the last `before` lines of `prefix` and the first `after` lines of `suffix`, numbered.

    The middle is coloured, or in ⟦⟧ if the console has no colours or there is nothing to colour.
    """
    from rich.text import Text

    prefix, middle, suffix = map(visible, (prefix, middle, suffix))
    head, tail = prefix.split("\n"), suffix.split("\n")
    marked = middle if out.color_system and middle.strip() else f"⟦{middle}⟧"
    text = Text("\n".join(head[-before - 1 :])).append(marked, style).append("\n".join(tail[: after + 1]))
    text.rstrip()
    text.expand_tabs(4)
    return numbered(text, max(1, len(head) - before))


def numbered(text: Text, first: int, rule: str = " │ ") -> Text:
    """The lines of a text, each after its number."""
    from rich.text import Text

    lines = text.split("\n", allow_blank=True)
    width = len(str(first + len(lines) - 1))
    rows = (Text.assemble((f"{number:>{width}}{rule}", "dim"), line) for number, line in enumerate(lines, first))
    return Text("\n").join(rows)


def check_folders(*paths: Path | None) -> None:
    """Raise InputError for a file whose folder does not exist, before any work is done for it."""
    for path in paths:
        if path is not None and not path.resolve().parent.is_dir():
            raise InputError(f"cannot write {path}: its folder does not exist", f"mkdir -p {path.parent}")
