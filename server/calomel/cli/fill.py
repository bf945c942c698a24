"""`calomel fill` and `calomel try`: a hole of a file, or of a few bundled ones, is filled and shown in its place."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calomel.cli.errors import CommandError, InputError, check_device, engine_errors_reported

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from calomel.suggest.completer import Fill
    from calomel.suggest.filler import Filler


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place between two characters: line and column, both counted from 1, the column in characters."""

    line: int
    column: int

    @classmethod
    def parse(cls, text: str, option: str) -> Place:
        """Read `LINE:COLUMN`; raises InputError, naming `option`, when `text` is something else."""
        match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
        if match is None or "0" in (match[1].lstrip("0") or "0", match[2].lstrip("0") or "0"):
            raise InputError(f"{option} {text!r} is no LINE:COLUMN with both counted from 1, such as {option} 12:5")
        return cls(int(match[1]), int(match[2]))

    def offset(self, text: str, option: str) -> int:
        """The index into `text` of this place.

        Raises:
            InputError: the text has no such line, or the line no such column.
        """
        lines = text.split("\n")
        if self.line > len(lines):
            raise InputError(f"{option} {self}: the file has {len(lines)} lines")
        length = len(lines[self.line - 1].removesuffix("\r"))
        if self.column > length + 1:
            raise InputError(f"{option} {self}: line {self.line} ends at column {length + 1}")
        return sum(len(line) + 1 for line in lines[: self.line - 1]) + self.column - 1

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Hole:
    """A hole in the file `path`, between `prefix` and `suffix`; what stood in it is forgotten."""

    path: str
    prefix: str
    suffix: str

    @classmethod
    def in_file(cls, file: Path, at: str, to: str | None = None) -> Hole:
        """The hole of `file` from `at` to `to` (both `LINE:COLUMN`; without `to` the hole is empty).

        Raises:
            InputError: the file cannot be read as UTF-8, a place is malformed or outside of it, or `to` is before `at`.
        """
        begin = Place.parse(at, "--at")
        end = begin if to is None else Place.parse(to, "--to")
        if end < begin:
            raise InputError(f"--to {end} is before --at {begin}")
        text = read_source(file)
        first, last = begin.offset(text, "--at"), end.offset(text, "--to")
        return cls(_shown_path(file), text[:first], text[last:])


def read_source(file: Path) -> str:
    """The text of `file`, line endings as they are; raises InputError when it is absent or not UTF-8."""
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 (byte {error.start}); only UTF-8 text can be filled") from error
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error


def _shown_path(file: Path) -> str:
    """The path as the model is told it: below the working folder, or the mere name; never a private absolute path."""
    try:
        return file.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return file.name


# The samples do not parse because of their mark: the extension keeps compilers and linters away from them.
EXTENSION = ".hole"


@dataclass(frozen=True, slots=True)
class Sample:
    """One hole, and the text that its author wrote there; the model sees `prefix`, `suffix` and `path` alone."""

    path: str
    prefix: str
    expected: str
    suffix: str

    @classmethod
    def parse(cls, path: str, text: str) -> Sample:
        """Cut `text` at its one mark; raises CommandError when it has none or several."""
        parts = re.split(r"⟦(.*?)⟧", text, flags=re.DOTALL)
        if len(parts) != 3:  # noqa: PLR2004  (what is before, in and behind the mark)
            raise CommandError(f"{path} has {len(parts) // 2} holes marked with ⟦⟧; a sample has one")
        return cls(path, *parts)


def bundled_samples() -> tuple[Sample, ...]:
    """All samples of the package, sorted by name."""
    entries = [entry for entry in files("calomel.cli").joinpath("samples").iterdir() if entry.name.endswith(EXTENSION)]
    return tuple(
        Sample.parse(entry.name.removesuffix(EXTENSION), entry.read_text(encoding="utf-8"))
        for entry in sorted(entries, key=lambda entry: entry.name)
    )


FILL_STYLE = "bold green"
HOLE_STYLE = "bold yellow"

# A model can write any byte, and an escape sequence would reach the terminal: control characters become pictures.
_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_VISIBLE = {code: picture for code, picture in _PICTURES.items() if chr(code) not in "\n\t"}


def excerpt(
    console: Console, prefix: str, middle: str, suffix: str, *, style: str = FILL_STYLE, before: int = 6, after: int = 4
) -> Text:
    """`middle` between the last `before` lines of `prefix` and the first `after` lines of `suffix`, numbered.

    The middle is coloured, and stands in ⟦⟧ where the console has no colours or there is nothing to colour.
    """
    from rich.text import Text

    prefix, middle, suffix = map(visible, (prefix, middle, suffix))
    head, tail = prefix.split("\n"), suffix.split("\n")
    shown_head, shown_tail = "\n".join(head[-before - 1 :]), "\n".join(tail[: after + 1])
    marked = middle if console.color_system and middle.strip() else f"⟦{middle}⟧"
    text = Text(shown_head)
    text.append(marked, style)
    text.append(shown_tail)
    text.rstrip()
    text.expand_tabs(4)
    first = max(1, len(head) - before)
    lines = text.split("\n", allow_blank=True)
    width = len(str(first + len(lines) - 1))
    out = Text()
    for number, line in enumerate(lines, first):
        out.append(f"{number:>{width}} │ ", "dim")
        out.append_text(line)
        out.append("\n")
    out.rstrip()
    return out


def visible(text: str) -> str:
    """The text with control characters as pictures and plain line ends."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def fill(
    file: Annotated[Path, typer.Argument(help="The source file; it is read, never written.")],
    at: Annotated[str, typer.Option(metavar="LINE:COLUMN", help="Where the hole begins, counted from 1:1.")],
    to: Annotated[
        str | None, typer.Option(metavar="LINE:COLUMN", help="Where it ends. The text in between is replaced.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, max=4096, help="Longest answer, in tokens.")] = 64,
    policy: Annotated[
        str | None, typer.Option(help="Reveal policy, e.g. threshold:0.9, verified, left_to_right.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Fill a hole in FILE and print it in context."""
    hole = Hole.in_file(file, at, to)
    with engine_errors_reported():
        from calomel.suggest.completer import FillRequest
        from calomel.suggest.in_process import open_filler

        request = FillRequest(
            prefix=hole.prefix,
            suffix=hole.suffix,
            path=hole.path,
            max_tokens=max_tokens,
            policy=policy,
            min_tokens=1,
            fitted=True,
        )
        check_device(device)
        with closing(open_filler(model, device)) as filler:
            answer = filler.fill(request)
    if as_json:
        print(json.dumps(_fields(hole, at, to, answer), ensure_ascii=False))
    else:
        _show(hole, answer)


def measures(answer: Fill) -> str:
    """One line: how sure the model is, and what the answer cost."""
    return (
        f"confidence {answer.confidence:.2f} · {answer.completion_tokens} tokens in {answer.steps} steps "
        f"({answer.forwards} forwards) · {1000 * answer.seconds:.0f} ms · {answer.finish_reason}"
    )


def _show(hole: Hole, answer: Fill) -> None:
    from rich.console import Console

    out = Console(highlight=False, soft_wrap=True)
    out.print(excerpt(out, hole.prefix, answer.text, hole.suffix))
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    if not answer.text:
        errors.print("Nothing that the model says fits there.")
    errors.print(measures(answer))


def _fields(hole: Hole, at: str, to: str | None, answer: Fill) -> dict[str, object]:
    return {
        "path": hole.path,
        "at": at,
        "to": to or at,
        "text": answer.text,
        "finish_reason": answer.finish_reason,
        "confidence": answer.confidence,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "cached_tokens": answer.cached_tokens,
        "steps": answer.steps,
        "forwards": answer.forwards,
        "seconds": answer.seconds,
    }


def tryout(
    policy: Annotated[str | None, typer.Option(help="Reveal policy. Default: the model's own.")] = None,
    model: Annotated[Path | None, typer.Option(help="Checkpoint folder. Default: the shipped model.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
) -> None:
    """Fill holes in a few bundled files."""
    from statistics import median

    from rich.console import Console

    samples = bundled_samples()
    out = Console(highlight=False, soft_wrap=True)
    with engine_errors_reported():
        from calomel.suggest.completer import FillRequest
        from calomel.suggest.in_process import open_filler

        check_device(device)
        began = time.perf_counter()
        with closing(open_filler(model, device)) as filler:
            loaded = time.perf_counter() - began
            out.print(f"Loaded {model or 'the shipped model, nano,'} on {device} in {loaded:.1f} s.")
            # The first request pays for buffers and thread pools that all later ones share.
            filler.fill(FillRequest(prefix="def warm_up() -> None:\n    ", path="warm_up.py"))
            answers = [_fill_and_show(out, filler, sample, policy) for sample in samples]
    equal = sum(answer.text == sample.expected for answer, sample in zip(answers, samples, strict=True))
    out.rule(style="dim")
    out.print(
        f"{equal} of {len(samples)} answers equal what the author wrote; "
        f"median {1000 * median(answer.seconds for answer in answers):.0f} ms an answer, after one to warm up. "
        "Nothing left this machine.\nYour own file: calomel fill FILE --at LINE:COLUMN"
    )


def _fill_and_show(out: Console, filler: Filler, sample: Sample, policy: str | None) -> Fill:
    from rich.text import Text

    from calomel.suggest.completer import FillRequest

    out.print()
    out.rule(f"[bold]{sample.path}[/bold]", align="left", style="dim")
    out.print("before", style="dim")
    out.print(excerpt(out, sample.prefix, " … ", sample.suffix, style=HOLE_STYLE, before=5, after=2))
    answer = filler.fill(
        FillRequest(
            prefix=sample.prefix, suffix=sample.suffix, path=sample.path, policy=policy, min_tokens=1, fitted=True
        )
    )
    out.print("after", style="dim")
    out.print(excerpt(out, sample.prefix, answer.text, sample.suffix, before=1, after=1))
    out.print(Text(measures(answer)))
    if answer.text == sample.expected:
        out.print("equal to what the author wrote", style="green")
    else:
        out.print(Text.assemble(("differs; the author wrote ", "yellow"), sample.expected))
    return answer
