r"""Golden cases: a text with marks for the cursor, for what is suggested, and for what the user has just done.

    ├new┤             inserted by the suggestion
    ├old→new┤         replaced by it; `├old→┤` is deleted
    ‸                 the cursor; without it, the suggestion is a fill at its first edit
    ⌈ … ⌉             the region that was asked for
    ⟨gone→written⟩    changed by the user a moment ago; the suggestion may stand inside of `written`
    ▒ … ▒             a secret that the model did not see

Line ends are \n; every case is tried with \r\n, too.
"""

from __future__ import annotations

from collections.abc import Callable

from calomel.selectivity.filters import Filter
from calomel.selectivity.proposal import Edit, Proposal, Recent

LINE_ENDS = ("\n", "\r\n")


def proposal(
    case: str,
    language_id: str = "python",
    *,
    cut_off: bool = False,
    mask: Callable[[str], str] = str,
    errors: Callable[[str], int] | None = None,
) -> Proposal:
    """The suggestion that a case shows; `errors` counts those of a text."""
    text, masked = "", ""
    edits: list[Edit] = []
    recent: list[Recent] = []
    written: list[tuple[int, str]] = []
    cursor: int | None = None
    region: list[int] = []
    hidden = False
    at = 0
    while at < len(case):
        mark = case[at]
        at += 1
        if mark == "├":
            old, arrow, new = case[at : case.index("┤", at)].partition("→")
            at = case.index("┤", at) + 1
            if not arrow:
                old, new = "", old
            pieces = old.split("▒")
            edits.append(Edit(len(text), len(text) + len("".join(pieces)), new))
            text += "".join(pieces)
            masked += "".join("*" * len(piece) if number % 2 else piece for number, piece in enumerate(pieces))
        elif mark == "⟨":
            written.append((len(text), case[at : case.index("→", at)]))
            at = case.index("→", at) + 1
        elif mark == "⟩":
            start, gone = written.pop()
            recent.append(Recent(start, len(text), gone, text[start:]))
        elif mark == "‸":
            cursor = len(text)
        elif mark in "⌈⌉":
            region.append(len(text))
        elif mark == "▒":
            hidden = not hidden
        else:
            text, masked = text + mark, masked + ("*" if hidden else mark)
    fill = cursor is None and not region
    made = Proposal(
        kind="fill" if fill else "edit",
        text=text,
        edits=tuple(edits),
        cursor=edits[0].start if cursor is None and edits else cursor or 0,
        language_id=language_id,
        region=(region[0], region[1]) if region else None,
        recent=tuple(recent),
        masked=masked,
        mask=mask,
        cut_off=cut_off,
    )
    if errors is None:
        return made
    before, after = errors(made.text), errors(made.after)
    return Proposal(**{name: getattr(made, name) for name in Proposal.__slots__} | {"errors": lambda: (before, after)})


def drops(
    drops_it: Filter,
    case: str,
    language_id: str = "python",
    *,
    cut_off: bool = False,
    mask: Callable[[str], str] = str,
    errors: Callable[[str], int] | None = None,
) -> bool:
    """What a filter says to a case; the same with every kind of line end.

    Raises:
        AssertionError: it is not the same.
    """
    said = {
        drops_it(proposal(case.replace("\n", ending), language_id, cut_off=cut_off, mask=mask, errors=errors))
        for ending in LINE_ENDS
    }
    if len(said) > 1:
        message = f"line ends change what becomes of {case!r}"
        raise AssertionError(message)
    return said.pop()
