"""`calomel fill` and `calomel try`: fill a hole in a file, or a few bundled ones, and show it in place."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from calomel.cli.chosen import AnyDevice, AnyModel, AnyUpstream, Chosen, UpstreamModel, chosen
from calomel.cli.output import AsJson, InputError, console, excerpt, plural, visible
from calomel.prompts.parts import PromptParts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from calomel.cli.tour import Scene, Tour
    from calomel.infer.completer import Completer, Fill, ModelInfo
    from calomel.infer.filler import Filler
    from calomel.infer.upstream.completer import UpstreamCompleter


def offset_of(text: str, place: str, option: str) -> int:
    """The index into `text` of a `LINE:COLUMN`, both counted from 1, the column in characters.

    Raises:
        InputError: the place is malformed, or the text has no such line, or the line no such column.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,8}):([1-9][0-9]{0,8})", place)
    if match is None:
        raise InputError(f"{option} {place!r} is not LINE:COLUMN, both counted from 1", f"{option} 12:5")
    line, column = int(match[1]), int(match[2])
    lines = text.split("\n")
    if line > len(lines):
        raise InputError(f"{option} {place}: the file has {plural(len(lines), 'line')}")
    length = len(lines[line - 1].removesuffix("\r"))
    if column > length + 1:
        raise InputError(f"{option} {place}: line {line} ends at column {length + 1}")
    return sum(len(line) + 1 for line in lines[: line - 1]) + column - 1


# Editors send files of a few megabytes at most.
_LARGEST_SOURCE: Final = 64 * 1024 * 1024


def read_source(file: Path) -> str:
    """The text of `file`, line endings as they are. Raises OSError, and InputError when it is not UTF-8."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_SOURCE + 1)
        if len(data) > _LARGEST_SOURCE:
            raise InputError(f"{file} is larger than {_LARGEST_SOURCE // 2**20} MiB", "another file")
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{file} is not UTF-8 (byte {error.start})", "convert it: Calomel completes only UTF-8 text"
        ) from error


@dataclass(frozen=True, slots=True)
class Hole:
    """A hole in the file `path`, between `prefix` and `suffix`; what is in it now, and the kind of a sample."""

    path: str
    prefix: str
    suffix: str
    expected: str = ""
    kind: str = ""

    @classmethod
    def in_file(cls, file: Path, at: str, to: str | None = None) -> Hole:
        """The hole of `file` from `at` to `to` (both `LINE:COLUMN`; without `to` the hole is empty).

        Raises:
            OSError: the file cannot be read.
            InputError: it is not UTF-8 or one of secrets, a place is malformed or outside it, or `to` is before `at`.
        """
        from calomel.workspace.privacy import secret_pattern

        pattern = secret_pattern(file.absolute()) or secret_pattern(file.resolve())
        if pattern is not None:
            raise InputError(f"{file} may hold secrets (its name matches {pattern}): no model sees such a file")
        text = read_source(file)
        first = offset_of(text, at, "--at")
        last = first if to is None else offset_of(text, to, "--to")
        if last < first:
            raise InputError(f"--to {to} is before --at {at}")
        try:
            path = file.resolve().relative_to(Path.cwd()).as_posix()
        except ValueError:
            # The model never sees a private absolute path.
            path = file.name
        return cls(path, text[:first], text[last:], text[first:last])

    @property
    def parts(self) -> PromptParts:
        """The hole as a prompt."""
        return PromptParts(path=self.path, prefix=self.prefix, suffix=self.suffix)


# The folders of the samples, and why their holes are easy or hard. None was chosen for its answer.
KINDS: Final = {"near": "where the answer appears elsewhere in the file", "far": "where it does not"}


def bundled_samples() -> tuple[Hole, ...]:
    """All samples of the package, by kind and name."""
    samples = []
    # The mark around the hole makes them invalid code: their extension hides them from compilers and linters.
    for kind in KINDS:
        for entry in sorted(files("calomel.cli").joinpath("samples", kind).iterdir(), key=lambda entry: entry.name):
            prefix, expected, suffix = re.split("[⟦⟧]", entry.read_text(encoding="utf-8"))
            samples.append(Hole(entry.name.removesuffix(".hole"), prefix, suffix, expected, kind))
    return tuple(samples)


_FIELDS: Final = (
    "text", "finish_reason", "confidence", "prompt_tokens", "completion_tokens", "cached_tokens", "steps", "forwards",
    "seconds",
)  # fmt: skip


def fill(
    file: Annotated[Path, typer.Argument(help="Source file. Calomel does not change it.")],
    at: Annotated[str, typer.Option(metavar="LINE:COLUMN", help="Start of the gap, counted from 1:1.")],
    to: Annotated[
        str | None, typer.Option(metavar="LINE:COLUMN", help="End of the gap. Default: the same place.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, max=4096, help="Maximum answer length in tokens.")] = 64,
    policy: Annotated[str | None, typer.Option(help="Reveal policy, e.g. threshold:0.9 or prefix:0.8.")] = None,
    model: AnyModel = None,
    upstream: AnyUpstream = None,
    upstream_model: UpstreamModel = None,
    device: AnyDevice = None,
    as_json: AsJson = False,
) -> None:
    """Fill a gap in FILE and print it in context."""
    choice = chosen(locals())
    hole = Hole.in_file(file, at, to)
    with closing(_opened(choice)) as filler:
        answer = _filled(filler, hole, policy, max_tokens)
    if as_json:
        fields = {"path": hole.path, "at": at, "to": to or at, **{name: getattr(answer, name) for name in _FIELDS}}
        # Escaped like the other control characters, which JSON does not ask for.
        print(json.dumps(fields).replace("\x7f", "\\u007f"))
        return
    out, errors = console(), console(stderr=True)
    out.print(excerpt(out, hole.prefix, answer.text, hole.suffix))
    if not answer.text:
        errors.print("The model's answer does not fit here. Try another place or a larger model.")
    errors.print(f"{choice.title}: {measures(answer)}" if choice.by_settings else measures(answer))


def _opened(choice: Chosen) -> Filler | UpstreamCompleter:
    from calomel.infer.in_process import open_filler

    return choice.outside() or open_filler(choice.model, choice.device, choice.threads)


def _filled(filler: Filler | UpstreamCompleter, hole: Hole, policy: str | None, max_tokens: int = 64) -> Fill:
    from calomel.infer.completer import FillRequest

    return filler.fill(
        FillRequest(
            "fill",
            hole.parts,
            max_tokens=max_tokens,
            policy=policy,
            min_tokens=1,
            fitted=True,
        )
    )


def measures(answer: Fill) -> str:
    """One line: how sure the model is, and what the answer cost."""
    return (
        f"confidence {answer.confidence:.2f} · {plural(answer.completion_tokens, 'token')} in "
        f"{plural(answer.steps, 'step')} ({plural(answer.forwards, 'forward')}) · "
        f"{1000 * answer.seconds:.0f} ms · {answer.finish_reason}"
    )


def tryout(
    model: AnyModel = None,
    upstream: AnyUpstream = None,
    upstream_model: UpstreamModel = None,
    device: AnyDevice = None,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds spent on the recording.")] = 10.0,
) -> None:
    """Show what an editor would suggest.

    It replays a recording with the suggestions that would appear, then fills gaps in sample files.
    """
    choice = chosen(locals())
    from calomel.infer.completer import FillRequest
    from calomel.infer.in_process import EngineCompleter, describe
    from calomel.infer.upstream.completer import UpstreamCompleter
    from calomel.report.running import Progress

    out = console()
    with Progress().later("loading the model"):
        opened = _opened(choice)
        opened.fill(FillRequest("fill", PromptParts(path="warm_up.py", prefix="def warm_up() -> None:\n    ")))
    with closing(opened) as filler:
        if isinstance(filler, UpstreamCompleter):
            _play(out, filler, filler.model, seconds)
        else:
            info = describe(choice.model)
            _play(out, EngineCompleter(filler, info), info, seconds)
        _fill_samples(out, filler)
    if choice.upstream is None:
        out.print("Calomel sent nothing over the network.")
    _what_next(out)


def _play(out: Console, completer: Completer, info: ModelInfo, seconds: float) -> None:
    """Play the bundled recording, and print what an editor shows, and the first wrong suggestion that it withholds."""
    from calomel.cli.tour import Tour, bundled_log
    from calomel.replay.log_time import run

    withheld: list[Scene] = []

    def show(scene: Scene) -> None:
        if scene.withheld is not None:
            withheld.append(scene)
        else:
            out.print(_coloured("\n".join(scene.lines())))

    out.print(f"Replaying an author's edits of three files. {info.title} suggests ⟦…⟧, in place of ⟨…⟩.\n")

    async def play() -> Tour:
        tour = Tour(bundled_log(), completer, info, show, seconds=seconds)
        await tour.watch()
        return tour

    tour = run(play())
    rejected = next((each for each in withheld if each.outcome == "rejected"), None)
    if rejected is not None:
        out.print(_coloured("\n".join(rejected.lines())))
    text = ", ".join(f"{count} {word}" for name, word in _TOLD.items() if (count := tour.outcomes[name]))
    out.print(f"\nShown: {text or 'nothing'}. Nothing at {plural(tour.silent, 'other pause')}.\n")


_TOLD: Final = {
    "accepted": "right",
    "partly": "partly right",
    "rejected": "wrong",
    "too_short": "too short to count",
    "superseded": "too late",
}


def _fill_samples(out: Console, filler: Filler | UpstreamCompleter) -> None:
    """Fill the gaps of the bundled files, whatever an editor would show of it."""
    samples = bundled_samples()
    out.print(f"{len(samples)} gaps in sample files. Every answer appears; an editor would hide unlikely ones.\n")
    right: Counter[str] = Counter()
    for sample in samples:
        answer = _filled(filler, sample, None)
        as_written = answer.text == sample.expected
        right[sample.kind] += as_written
        out.print(f"{sample.path}:{sample.prefix.count(chr(10)) + 1}", markup=False, highlight=False)
        line = sample.prefix.rpartition("\n")[2] + f"⟦{answer.text}⟧" + sample.suffix.partition("\n")[0]
        out.print(_coloured("\n".join(f"    {visible(each)}" for each in line.split("\n"))))
        words = "right" if as_written else f"wrong: the author wrote {sample.expected}"
        out.print(_coloured(f"    {words}"))
    counts = Counter(each.kind for each in samples)
    shares = (f"{right[kind]} of {counts[kind]} {words}" for kind, words in KINDS.items())
    out.print(f"Exactly right: {', '.join(shares)}.")
    out.print("Ten gaps are too few to measure quality.")


def _coloured(text: str) -> Text:
    """What is suggested in green, what it replaces and what was wrong in red, where the terminal has colours."""
    from rich.text import Text

    lines = Text(text)
    lines.highlight_regex(r"(?sm)⟦.*?⟧|^ +(?:partly )?right\b", "green")
    lines.highlight_regex(r"(?sm)⟨.*?⟩|^    (?:wrong|hidden)\b", "red")
    return lines


def _what_next(out: Console) -> None:
    """The next steps, each with its command."""
    from calomel.cli.steps import steps
    from calomel.server.settings import load

    out.print()
    for step in steps(load({}).settings):
        if step.command != "calomel try":
            out.print(f"{step.found}\n   {step.command}")
    out.print("Fill a gap in your own file:\n   calomel fill FILE --at LINE:COLUMN")
