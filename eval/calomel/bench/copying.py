"""An identifier that is defined far in front of the cursor, and must be filled where it is used."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from calomel.bench.heldout import HeldoutFile
from calomel.bench.holes import Hole
from calomel.context.counter import TokenCounter
from calomel.prompts.parts import Excerpt
from calomel.workspace.situation import Situation

# Tokens between the definitions and the cursor, for each size of context that has room for them.
DISTANCES: Final = {2048: 1000, 8192: 6000, 32_768: 30_000}
# So many names share a context, and with it what reading it costs.
NAMES: Final = 8
# Characters of the name that the user has typed: enough to tell the names apart.
_TYPED: Final = 3
_FILLER_LINES: Final = 40
_SYLLABLES: Final = (
    *("bra", "dol", "fen", "gri", "hul", "jor", "kel", "lum", "mip", "nok", "pra", "quo", "rif", "sot", "tuv", "vex"),
    *("wim", "yar", "zub", "cle"),
)


@dataclass(frozen=True, slots=True)
class _Language:
    """How a function is defined and used in a language; `{name}` and `{number}` are filled in."""

    ending: str
    definition: str
    use: tuple[str, str]
    join: Callable[[Sequence[str]], str]


def _snake(words: Sequence[str]) -> str:
    return "_".join(words)


def _camel(words: Sequence[str]) -> str:
    return words[0] + "".join(word.capitalize() for word in words[1:])


_LANGUAGES: Final = {
    "go": _Language(
        "go",
        "func {name}(value int) int {{\n\treturn value + {number}\n}}\n\n",
        ("package main\n\nfunc main() {\n\tresult := ", "(41)\n\tprintln(result)\n}\n"),
        _camel,
    ),
    "python": _Language(
        "py",
        "def {name}(value):\n    return value + {number}\n\n\n",
        ("def main(value):\n    result = ", "(value)\n    return result\n"),
        _snake,
    ),
    "rust": _Language(
        "rs",
        "pub fn {name}(value: i64) -> i64 {{\n    value + {number}\n}}\n\n",
        ("fn main() {\n    let result = ", '(41);\n    println!("{}", result);\n}\n'),
        _snake,
    ),
    "typescript": _Language(
        "ts",
        "export function {name}(value: number): number {{\n  return value + {number};\n}}\n\n",
        ("export function main(value: number): number {\n  const result = ", "(value);\n  return result;\n}\n"),
        _camel,
    ),
}


@dataclass(frozen=True, slots=True)
class CopyCase:
    """A hole, and what stands in front of it.

    Attributes:
        definitions: the excerpt that defines the name; the least useful one, and so the farthest.
    """

    hole: Hole
    situation: Situation
    definitions: Excerpt


def copy_cases(
    files: Sequence[HeldoutFile], counter: TokenCounter, *, size: int, groups: int, seed: int
) -> Iterator[CopyCase]:
    """`groups` contexts of `NAMES` cases each; the languages take turns. Empty for a size without a distance."""
    distance = DISTANCES.get(size)
    languages = sorted({file.language for file in files} & set(_LANGUAGES))
    if distance is None or not languages:
        return
    for group in range(groups):
        language = languages[group % len(languages)]
        rng = random.Random(f"{seed}:copy:{size}:{group}")  # noqa: S311 - seeded, not secret
        yield from _group(language, files, counter, distance, size, group, rng)


def copy_name(size: int) -> str:
    """The key of the report: `copy_30k` for 30,000 tokens."""
    return f"copy_{DISTANCES[size] // 1000}k"


def _group(
    language: str,
    files: Sequence[HeldoutFile],
    counter: TokenCounter,
    distance: int,
    size: int,
    group: int,
    rng: random.Random,
) -> Iterator[CopyCase]:
    form = _LANGUAGES[language]
    firsts = rng.sample(_SYLLABLES, NAMES)
    names = [form.join((first + rng.choice(_SYLLABLES), rng.choice(_SYLLABLES), "value")) for first in firsts]
    text = "".join(form.definition.format(name=name, number=at + 1) for at, name in enumerate(names))
    definitions = Excerpt(f"shared/definitions.{form.ending}", 0, text)
    filler = _filler([file for file in files if file.language == language], counter, distance, rng)
    before, after = form.use
    for name in names:
        prefix, answer = before + name[:_TYPED], name[_TYPED:]
        path = f"app/main.{form.ending}"
        hole = Hole(
            f"copy:{size}:{group}:{name}", copy_name(size), language, path, prefix, after, answer, max_tokens=24
        )
        yield CopyCase(
            hole,
            Situation(f"bench:copy:{size}:{group}", path, language, prefix + after, len(prefix), 0, (), 0,
                      (definitions, *filler)),
            definitions,
        )  # fmt: skip


def _filler(
    files: Sequence[HeldoutFile], counter: TokenCounter, distance: int, rng: random.Random
) -> tuple[Excerpt, ...]:
    """Code of about `distance` tokens in pieces of some lines; again from the start where there is not enough."""
    order = list(files)
    rng.shuffle(order)
    pieces = [
        Excerpt(file.path, at, "".join(lines[at : at + _FILLER_LINES]))
        for file in order
        for lines in (file.text.splitlines(keepends=True),)
        for at in range(0, len(lines), _FILLER_LINES)
    ]
    found: list[Excerpt] = []
    tokens = at = 0
    while pieces and tokens < distance:
        piece = pieces[at % len(pieces)]
        at += 1
        count = counter.excerpts((piece,))
        # A piece that would go far beyond the distance would leave no room for the definitions.
        if tokens + count <= distance + 64:
            found.append(piece)
            tokens += count
        elif at > 4 * len(pieces):
            break
    return tuple(found)
