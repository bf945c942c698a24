"""`python -m tests.refactoring.measure --language python --count 200`: what Tab does of renames, in figures."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from itertools import islice

from tests.refactoring.library import KINDS
from tests.refactoring.renames import LANGUAGES, Found, draw, library_of, tabbed
from tests.refactoring.signatures import HOW, Followed, draw_signatures, followed


def table(found: Sequence[Found]) -> str:
    """A line for each kind, and one for all."""
    head = ("kind", "renames", "places", "found", "share", "outside", "code", "string", "comment", "files", "broken")
    rows: list[tuple[str, ...]] = [head]
    for kind in (*KINDS, "all"):
        some = [each for each in found if kind in {each.drawn.name.kind, "all"}]
        wanted, right = sum(each.wanted for each in some), sum(each.found for each in some)
        outside = [place for each in some for place in each.outside]
        kinds = [sum(place.kind == what for place in outside) for what in ("code", "string", "comment")]
        files, broken = sum(bool(each.outside) for each in some), sum(bool(each.broken) for each in some)
        share = f"{right / wanted:.3f}" if wanted else "-"
        counts = (len(some), wanted, right, share, len(outside), *kinds, files, broken)
        rows.append((kind, *map(str, counts)))
    return "\n".join("  ".join(f"{cell:>9}" for cell in row) for row in rows)


def listing(found: Sequence[Found]) -> str:
    """Every place outside, and every file that is broken."""
    lines = []
    for each in found:
        name = each.drawn.name
        if each.outside or each.broken or not each.ended:
            row = each.drawn.text.count("\n", 0, name.start) + 1
            at_use = "" if each.drawn.first.start == name.start else ", begun at a use"
            lines.append(f"{each.drawn.file}:{row} {name.kind} {name.old} -> {each.drawn.new}{at_use}"
                         f" ({each.found} of {each.wanted})")  # fmt: skip
        if each.broken:
            lines.append(f"    BROKEN {each.broken}")
        if not each.ended:
            lines.append("    Tab has no end")
        lines += [
            f"    {o.kind} {o.row}: {o.old!r} -> {o.new!r} by {o.maker} in {o.line[:140]!r}" for o in each.outside
        ]
    return "\n".join(lines)


async def measured(language: str, count: int, seed: int, kinds: Sequence[str] = KINDS) -> list[Found]:
    """Raises LibraryError where the library is not installed."""
    library = library_of(language)
    try:
        return [await tabbed(language, library, each) for each in islice(draw(library, seed, kinds), count)]
    finally:
        library.close()


async def measured_signatures(language: str, count: int, seed: int) -> list[Followed]:
    """Raises LibraryError where the library is not installed."""
    library = library_of(language)
    try:
        return [await followed(each) for each in islice(draw_signatures(library, seed), count)]
    finally:
        library.close()


def signature_table(found: Sequence[Followed]) -> str:
    """A line for each way of changing a list, after every line that should not have changed."""
    lines = []
    for each in found:
        if each.outside or each.broken or not each.ended:
            lines.append(f"{each.drawn.file} {each.drawn.how} {each.drawn.name.old} ({each.found} of {each.wanted})")
            lines += [f"    {old!r} -> {new!r}" for old, new in each.outside]
            lines += ["    BROKEN"] * each.broken + ["    Tab has no end"] * (not each.ended)
    lines.append("".join(f"{cell:>10}" for cell in ("how", "changes", "lines", "found", "outside", "broken")))
    for how in (*HOW, "all"):
        some = [each for each in found if how in {each.drawn.how, "all"}]
        wanted, right = sum(each.wanted for each in some), sum(each.found for each in some)
        counts = (len(some), wanted, right, sum(len(each.outside) for each in some), sum(each.broken for each in some))
        lines.append("".join(f"{cell!s:>10}" for cell in (how, *counts)))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", choices=LANGUAGES, default="python")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--signatures", action="store_true", help="change parameter lists instead of names")
    options = parser.parse_args()
    if options.signatures:
        told = asyncio.run(measured_signatures(options.language, options.count, options.seed))
        print(signature_table(told))  # noqa: T201 (its output)
        return
    found = asyncio.run(measured(options.language, options.count, options.seed, options.kinds.split(",")))
    print(listing(found))  # noqa: T201
    print(table(found))  # noqa: T201


if __name__ == "__main__":
    main()
