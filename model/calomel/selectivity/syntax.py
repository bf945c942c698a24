"""Filters of syntax: unmatched brackets and quotes, and syntax errors."""

from __future__ import annotations

import re
from typing import Final

from calomel.code.lines import LINE_END, above, columns, head_of, rest_of
from calomel.code.scan import CLOSING, Loose, behind_string, has_to_go_on, knows, loose, scan, unmatched
from calomel.selectivity.proposal import Proposal
from calomel.selectivity.prose import closes_unopened, comment_before

# Those of them that nothing can end with: `x++`, `f()?` and `Vec<T>` are complete.
_WANTING: Final = re.compile(r"(?:[.=*%&|<^@\\]|(?<!\+)\+|(?<!-)-|\b(?:and|or|not|in|is|new|import|from|await))\s*\Z")
# Languages whose braces are not blocks.
_NO_BLOCKS: Final = frozenset({"python", "json", "jsonc"})


def _ends_open(proposal: Proposal) -> bool:
    """Whether the last line that it writes ends in something that must continue, with no word after it."""
    if not proposal.edits:
        return False
    start, end, new = proposal.edits[-1]
    line = (head_of(proposal.text, start) + new).rstrip()[-200:]
    return bool(new.strip()) and not rest_of(proposal.text, end).strip(" \t)]}\"'`;,") and has_to_go_on(line)


def _wants_more(proposal: Proposal) -> bool:
    """Whether a text at the end of a line ends in an operator, and not within a comment."""
    if not knows(proposal.language_id) or not proposal.edits or rest_of(proposal.text, proposal.edits[-1][1]).strip():
        return False
    start, _, new = proposal.edits[-1]
    line = LINE_END.split((head_of(proposal.text, start) + new).rstrip())[-1]
    if _WANTING.search(line[-200:]) is None:
        return False
    return all(kind == "bracket" or end < len(line) for kind, _, end in scan(line, proposal.language_id))


def closing(proposal: Proposal) -> str | None:
    """What closes the blocks that a text at the cursor opens at line ends; None if it opens anything else.

    After the head of a block the user writes its body next.
    """
    language_id = proposal.language_id
    if proposal.kind != "fill" or len(proposal.edits) != 1 or not knows(language_id) or language_id in _NO_BLOCKS:
        return None
    _, end, new = proposal.edits[0]
    opened, _ = unmatched(new, language_id)
    if not opened or rest_of(proposal.text, end).strip() or not all(_ends_line(new, at) for at, _ in opened):
        return None
    return "\n" + "".join(closer for _, closer in reversed(opened))


def _ends_line(text: str, at: int) -> bool:
    """Whether the line of `at` ends with an opening brace."""
    found = LINE_END.search(text, at)
    return text[at : found.start() if found else len(text)].rstrip().endswith("{")


# Characters of the text above and below that are searched for a counterpart.
_ABOVE: Final = 1600
_BELOW: Final = 800
# In a longer text the starts of multi-line strings are not counted.
_LONGEST: Final = 1_000_000
# What turns other text into strings and comments.
_CHANGING: Final = re.compile(r"""["'`#/*]""")


def unbalanced(proposal: Proposal) -> bool:
    """Whether a text at the cursor certainly adds unmatched brackets or quotes; in a comment, unopened brackets."""
    return _closes_unopened(proposal) or _unbalances(proposal)


def _closes_unopened(proposal: Proposal) -> bool:
    if proposal.kind != "fill" or len(proposal.edits) != 1:
        return False
    start, _, new = proposal.edits[0]
    comment = comment_before(proposal.text, start, proposal.language_id)
    return comment is not None and closes_unopened(comment, LINE_END.split(new)[0])


def _unbalances(proposal: Proposal) -> bool:
    """Whether there are more unmatched brackets or quotes in code.

    Blocks that it opens at the end of a line may stay open. Inside a multi-line string nothing has to be balanced.
    Edits are left to the parser: brackets are counted in a few lines, of which an edit may remove some.
    """
    text, language_id = proposal.text, proposal.language_id
    if proposal.kind == "edit" or not proposal.edits or not knows(language_id) or len(text) > _LONGEST:
        return False
    if _evidently_balanced(proposal):
        return False
    first, last = proposal.edits[0][0], proposal.edits[-1][1]
    line = first - len(head_of(text, first))
    start = text.rfind("\n", 0, max(0, first - _ABOVE)) + 1
    end = text.find("\n", min(len(text), last + _BELOW)) + 1 or len(text)
    code = behind_string(text, start, language_id)
    if code is None or code > line:
        return False
    # A text that begins indented is a window of a longer file.
    whole = code == 0 and not text.lstrip("\r\n")[:1].isspace()
    over = loose(text[code:line], language_id, whole=whole)
    if over.long or loose(text[line:first], language_id).long:
        return False
    made = proposal.after
    written, behind = made[line : last + len(made) - len(text)], text[last:end]
    before = loose(text[line:end], language_id, whole=whole, before=over)
    after = loose(written + behind, language_id, whole=whole, before=over)
    if not _is_worse(before, after):
        return False
    closed = closing(proposal)
    if closed is not None:
        after = loose(written + closed + behind, language_id, whole=whole, before=over)
    # What is open at the end of these lines may be closed after them.
    return _is_worse(before, after) and (end == len(text) or not _mends(proposal))


def _mends(proposal: Proposal) -> bool:
    counted = proposal.errors("")
    return counted is not None and counted[1] < counted[0]


def _is_worse(before: Loose, after: Loose) -> bool:
    return after.total > before.total or after.unmatched > before.unmatched


def _evidently_balanced(proposal: Proposal) -> bool:
    """Whether each new and each old piece is balanced by itself, and contains no string and no comment."""
    for start, end, new in proposal.edits:
        for piece in (new, proposal.text[start:end]):
            if _CHANGING.search(piece):
                return False
            if loose(piece, proposal.language_id, whole=True).unmatched:
                return False
    return True


# Around existing errors a parser guesses: among many it finds more or fewer by chance.
TRUSTED: Final = 1
_FUNCTION: Final = re.compile(r"[ \t]*(?:async[ \t]+)?def[ \t]")
# Reasons to evaluate a value in brackets.
_ACTS: Final = re.compile(r"\b(?:await|yield)\b|:=")
_METHOD: Final = re.compile(r"([ \t]*)(?:async[ \t]+)?def[ \t]+\w+[ \t]*\([ \t]*(?:self|cls)\b")


def unparsable(proposal: Proposal) -> bool:
    """Whether there are more syntax errors after it than before; for text at the cursor, if there was at most one.

    An edit on the cursor's line that opens a block, a list or a statement is not finished yet. Of text at the cursor
    only the head of a block may be incomplete; half an expression is dropped even if there was half of one before. A
    method in the body of a function is no syntax error in Python, but nobody wants it; nor a line that is just a value
    in brackets, nor a statement that ends before the rest of its line, nor a brace that closes a block deeper than it
    began.
    """
    if proposal.kind == "edit":
        counted = None if _ends_open(proposal) and _is_at_cursor(proposal) else proposal.errors("")
        return counted is not None and counted[1] > counted[0]
    if _is_method_in_function(proposal) or _is_idle(proposal) or _ends_statement(proposal) or _closes_deeper(proposal):
        return True
    closed = closing(proposal)
    half, head = _wants_more(proposal), _finishes_head(proposal, closed)
    if not _more(proposal.errors(""), half=half, head=head):
        return False
    return closed is None or _more(proposal.errors(closed), half=half, head=head)


def _is_at_cursor(proposal: Proposal) -> bool:
    """Whether the last line that it writes is the one being typed."""
    start, end, _ = proposal.edits[-1]
    between = proposal.text[proposal.cursor : start] or proposal.text[end : proposal.cursor]
    return "\n" not in between and "\r" not in between


def _more(counted: tuple[int, int] | None, *, half: bool, head: bool) -> bool:
    """Whether there are more errors; for what completes a head that was half written, whether there are any."""
    if counted is None:
        return False
    before, after = counted
    return (half and after > 0) or (before <= TRUSTED and after > (0 if head else before))


def _is_method_in_function(proposal: Proposal) -> bool:
    """Whether a text on a new line begins with a method, and the block around it is a function's."""
    if proposal.language_id != "python" or len(proposal.edits) != 1:
        return False
    start, _, new = proposal.edits[0]
    head = head_of(proposal.text, start)
    lines = above(proposal.text, start)
    if new[:1] in {"\r", "\n"}:
        lines, head = [*lines, head], ""
    first = next((line for line in LINE_END.split(head + new) if line.strip()), "")
    found = _METHOD.match(first)
    if found is None or (head.strip() and not new[:1].isspace()):
        return False
    around = (line for line in reversed(lines) if line.strip() and columns(line) < columns(first))
    return _FUNCTION.match(next(around, "")) is not None


def _is_idle(proposal: Proposal) -> bool:
    """Whether a new line of Python is just a value in brackets, outside of strings and other brackets."""
    if proposal.language_id != "python" or len(proposal.edits) != 1:
        return False
    start, end, new = proposal.edits[0]
    head = "" if new[:1] in {"\r", "\n"} else head_of(proposal.text, start)
    line = LINE_END.split(new.strip())[0].strip()
    if head.strip() or rest_of(proposal.text, end).strip() or line[-1:] != CLOSING.get(line[:1], " "):
        return False
    # Its first bracket is closed by its last one.
    alone = [at for at, _ in unmatched(line[:-1], "python")[0]] == [0] and _ACTS.search(line) is None
    around = "\n".join(above(proposal.text, start))
    return alone and not unmatched(around, "python")[0] and behind_string(proposal.text, start, "python") == start


_HEAD: Final = re.compile(r"\s*(?:async\s+)?(?:for|while|if|elif|with|def|class|except|case)\b.*:\s*\Z", re.DOTALL)


def _finishes_head(proposal: Proposal, closed: str | None) -> bool:
    """Whether a text at the cursor completes the head of a block, which `closed` would close."""
    if len(proposal.edits) != 1:
        return False
    start, end, new = proposal.edits[0]
    head = head_of(proposal.text, start)
    if not head.strip():
        return False
    written = proposal.language_id == "python" and _HEAD.match(head + new) is not None
    return closed is not None or (written and not rest_of(proposal.text, end).strip())


# What goes on with a line, other than a bracket or a mark that ends something.
_GOES_ON: Final = re.compile(r"\s*[\w\"'`(\[{]")


def _ends_statement(proposal: Proposal) -> bool:
    """Whether a text within a line ends its statement, so that the rest of the line becomes another one."""
    if len(proposal.edits) != 1 or not knows(proposal.language_id):
        return False
    start, end, new = proposal.edits[0]
    head, said = head_of(proposal.text, start), new.rstrip()
    rest, (_, line_end, lead) = rest_of(proposal.text, end), new[len(said) :].rpartition("\n")
    if not head.strip() or not said or not _GOES_ON.match(rest):
        return False
    if line_end and (lead or rest[:1].isspace()):
        return False  # a line of its own, with its indentation
    if any(kind != "bracket" and at >= len(head) for kind, _, at in scan(head, proposal.language_id)):
        return False  # a comment or a string
    in_text = behind_string(proposal.text, start, proposal.language_id) != start
    if in_text or loose(head + new, proposal.language_id).waiting:
        return False
    return said.endswith(";") or (bool(line_end) and not has_to_go_on(said))


def _closes_deeper(proposal: Proposal) -> bool:
    """Whether a text begins with the brace that closes a block, further to the right than the line that opened it."""
    if len(proposal.edits) != 1 or not knows(proposal.language_id) or proposal.language_id in _NO_BLOCKS:
        return False
    start, _, new = proposal.edits[0]
    lead = head_of(proposal.text, start) + new[: len(new) - len(new.lstrip())]
    if not new.lstrip().startswith("}") or LINE_END.split(lead)[-1].strip():
        return False
    around = "\n".join(above(proposal.text, start))
    opened = [at for at, closer in unmatched(around, proposal.language_id)[0] if closer == "}"]
    if not opened or not _ends_line(around, opened[-1]):
        return False
    return columns(LINE_END.split(lead)[-1] + "}") > columns(head_of(around, opened[-1]) + "{")
