"""What every answer for a hole is held to, told from the texts alone, and answers that would break it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from calomel.code.trees import error_count

_SAMPLES = Path(__file__).parents[2] / "server" / "calomel" / "cli" / "samples"
_SCRIPT = """import { read } from "./files";

/* Lines of a file that are no comments. */
export function lines(path, limit = 10) {
  const found = [];
  for (const line of read(path).split("\\n")) {
    if (!line.startsWith("#") && found.length < limit) {
      found.push({ line, size: line.length });
    }
  }
  return found.map((each) => `${each.size}: ${each.line}`);
}
"""
TEXTS = {
    path.name.removesuffix(".hole"): path.read_text(encoding="utf-8").replace("⟦", "").replace("⟧", "")
    for path in sorted(_SAMPLES.glob("*.hole"))
} | {"lines.js": _SCRIPT}
_LANGUAGES = {"py": "python", "go": "go", "ts": "typescript", "rs": "rust", "js": "javascript"}
_PATHS = {"typescript": "lines.ts"}
_WORD = re.compile(r"(?<!\w)[^\W\d]\w{2,}[ \t]*\Z")
_PIECES = (
    *("return ", "(", ")", "[", "{", "}", '"', "'", "`", ":", ",", ".", " = ", " + ", "\n", "\n    ", "\n}", "/* "),
    *("foo(a, ", "x", "self.", "def add(self, n):", "if x {", "# note", "// note", "# type: ignore[attr-"),
    *('append({"name": name, "price": price', "t.Callable[[t.Iterator[t.", "return nil", "length:"),
)


@dataclass(frozen=True)
class Case:
    """A hole in a file, what stood there, and what a model says."""

    path: str
    prefix: str
    middle: str
    suffix: str
    says: str
    max_tokens: int

    @property
    def language_id(self) -> str:
        """Of the file."""
        return _LANGUAGES[self.path.rpartition(".")[2]]


@st.composite
def hostile(draw: Any) -> Case:
    """Holes anywhere, and answers with half tokens, repeated words, open brackets and the suffix's own lines."""
    path = draw(st.sampled_from(sorted(TEXTS)))
    text = TEXTS[path]
    start = draw(st.integers(0, len(text)))
    end = min(len(text), start + draw(st.one_of(st.just(0), st.integers(0, 60))))
    prefix, middle, suffix = text[:start], text[start:end], text[end:]
    lines = st.sampled_from([line for line in text.split("\n") if line.strip()])
    word = (re.findall(r"\w+", prefix) or ["x"])[-1]
    pieces = st.one_of(
        st.sampled_from(_PIECES),
        lines,
        st.sampled_from([word, word + " ", middle, suffix[:20], suffix[:60], prefix[-20:]]),
    )
    says = "".join(draw(st.lists(pieces, max_size=4)))
    return Case(path, prefix, middle, suffix, says, draw(st.sampled_from([2, 5, 12, 64])))


def broken(case: Case, text: str) -> str:
    """What is wrong with a text in a hole; nothing when it may be there."""
    # Who is told no path may take JavaScript for TypeScript: what is wrong is wrong in both.
    languages = ("javascript", "typescript") if case.language_id == "javascript" else (case.language_id,)
    worse = [_worse(replace(case, path=_PATHS.get(language, case.path)), text) for language in languages]
    if all(worse):
        return worse[0]
    word = _WORD.search(case.prefix)
    if word and word[0].strip() != "not" and re.match(rf"{re.escape(word[0])}(?!\w)", text):
        return "the word in front of it"
    own = [line.rstrip() for line in (case.prefix.rpartition("\n")[2] + text).split("\n") if line.strip()]
    rest, _, below = case.suffix.partition("\n")
    behind = next((line.rstrip() for line in below.split("\n") if line.strip()), "")
    if text.strip() and not rest.strip() and len(own) > 1 and sum(map(str.isalpha, behind)) > 4 and own[-1] == behind:
        return "the line behind it"
    return ""


def _worse(case: Case, text: str) -> str:
    """What a text in a hole adds to the syntax errors of a file; nothing when it adds none."""
    before, after = errors(case, case.prefix + case.suffix), errors(case, case.prefix + text + case.suffix)
    blocks = "" if case.language_id == "python" else _blocks(text)
    closed = errors(case, case.prefix + text + blocks + case.suffix) if blocks else after
    return f"{before} syntax errors before and {after} behind it" if before <= 1 and min(after, closed) > before else ""


def errors(case: Case, text: str) -> int:
    """Of a text in the language of a case."""
    return error_count(text, case.language_id, 60.0) or 0


def _blocks(text: str) -> str:
    """What closes the braces that a text leaves open at the ends of lines, strings and comments aside."""
    waiting = ""
    for line in text.split("\n"):
        for character in re.sub(r"\"[^\"]*\"|'[^']*'|`[^`]*`|//.*", "", line):
            if character in "([{":
                waiting = ")]}"["([{".index(character)] + waiting
            elif waiting[:1] == character:
                waiting = waiting[1:]
    return "\n" + waiting if waiting else ""
