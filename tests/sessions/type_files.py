"""Types files key by key in a real Neovim, as a person who takes what is right, and counts the keys.

`python -m tests.sessions.type_files BEFORE AFTER [BEFORE AFTER…]`: each pair is a file as it is opened and as it is in
the end. The person goes through it from top to bottom; where the two differ, the old text is removed and the new text
typed. Whatever stands on the screen between two keys is read: a suggestion that is right as a whole, in its first line
or in its first word is taken at once, any other is typed over. Prints one line a pair, and with `--offers FILE` every
suggestion that was shown, as a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final

from tests.editors.neovim.neovim import Neovim
from tests.editors.programs import find_neovim
from tests.editors.shared import no_server_stays
from tests.lsp.program import REAL, environment

_TOKEN: Final = re.compile(r"\w+|[ \t]+|\n[ \t]*|.", re.DOTALL)
_WORD: Final = re.compile(r"\s*(?:\w+|[^\w\s]+)")
_TYPES: Final = {"py": "python", "ts": "typescript", "rs": "rust", "md": "markdown", "yml": "yaml"}
# Going to a place and removing what stands there, whatever that is.
_PLACE_KEYS: Final = 3
# Takes all of a suggestion, also where Tab indents.
_TAKE: Final = "<M-l>"
# A word is worth a key from so many characters on.
_LEAST: Final = 3
_REST_SECONDS: Final = 1.2

# The suggestion on the screen: its id, where its text goes, what it removes, and what it puts there.
_SHOWN: Final = """
local state = require("calomel.buffer").state(0)
local s = state and state.shown
if not s then
    return vim.NIL
elseif s.ghost then
    return { id = s.id, ghost = s.text }
end
local ns = vim.api.nvim_get_namespaces()["calomel.anchors"]
local mark = s.first and vim.api.nvim_buf_get_extmark_by_id(0, ns, s.first, {}) or { s.row, s.col }
return { id = s.id, row = mark[1], col = mark[2], removed = s.removed, new = s.new, buffer = s.elsewhere or false }
"""


def changes(text: str, wanted: str) -> Iterator[tuple[int, int, str]]:
    """What has to be done in `text`, in its order: start, end, and the text that belongs there."""
    old, new = _TOKEN.findall(text), _TOKEN.findall(wanted)
    starts = [0]
    for token in old:
        starts.append(starts[-1] + len(token))
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield starts[i], starts[j], "".join(new[k:m])


def cost(text: str, wanted: str) -> int:
    """How many characters have to be removed and typed."""
    return sum(end - start + len(new) for start, end, new in changes(text, wanted))


def strokes(text: str) -> list[str]:
    """The keys of a text; an editor indents a new line by itself, so its indentation comes with the Enter key."""
    return re.findall(r"\n[ \t]*|.", text)


class Person:
    """Types one file."""

    def __init__(self, neovim: Neovim, before: str, wanted: str, name: str, pause: float) -> None:
        self._neovim = neovim
        self._wanted = wanted
        self._pause = pause
        self.keys = 0
        self.offers: dict[str, dict[str, Any]] = {}
        kind = name.rpartition(".")[2]
        neovim.open(before, name, _TYPES.get(kind, kind))
        neovim.command("setlocal noautoindent noexpandtab indentexpr= nocindent nosmartindent")

    def type(self) -> None:
        """Until the file is as wanted."""
        while True:
            self._look(_REST_SECONDS)
            while self._take_edit():
                self._look(_REST_SECONDS)
            left = next(changes(self._text(), self._wanted), None)
            if left is None:
                return
            self._change(*left)

    def _change(self, start: int, end: int, new: str) -> None:
        text = self._text()
        if start == len(text) and new.endswith("\n"):
            start, end, new = start - 1, end - 1, "\n" + new[:-1]
        row, column = text.count("\n", 0, start), start - (text.rfind("\n", 0, start) + 1)
        last, behind = text.count("\n", 0, end), end - (text.rfind("\n", 0, end) + 1)
        lines = text.split("\n")
        places = [row, len(lines[row][:column].encode()), last, len(lines[last][:behind].encode())]
        self._neovim.type("<Esc>")
        self._neovim.lua("vim.api.nvim_win_set_cursor(0, { ({ ... })[1] + 1, 0 })", row)
        if start < end:
            self._neovim.lua("local a, b, c, d = ... vim.api.nvim_buf_set_text(0, a, b, c, d, {})", *places)
        self._neovim.lua("local a, b = ... vim.api.nvim_win_set_cursor(0, { a + 1, b })", *places[:2])
        self._neovim.type("A" if places[1] == len(self._neovim.text().split("\n")[row].encode()) else "i")
        self.keys += _PLACE_KEYS
        rest = new
        while rest:
            self._look(self._pause)
            taken = self._take_text(rest)
            if taken is None:
                return
            if taken:
                rest = rest[taken:]
                continue
            if self._take_edit():
                return
            stroke = strokes(rest)[0]
            self._neovim.type(_keys(stroke))
            self.keys += 1
            rest = rest[len(stroke) :]

    def _look(self, seconds: float) -> None:
        time.sleep(seconds)
        shown = self._shown()
        if shown is not None and shown["id"] not in self.offers:
            self.offers[shown["id"]] = shown | {"verdict": "wrong", "around": self._around()}

    def _take_text(self, rest: str) -> int | None:
        shown = self._shown()
        if shown is None or "ghost" not in shown:
            return 0
        ghost, seen = shown["ghost"].rstrip(), self.offers.setdefault(shown["id"], shown | {"verdict": "wrong"})
        line, word = ghost.split("\n")[0], _WORD.match(ghost)
        if rest.startswith(ghost):
            verdict, key, length = "right", _TAKE, len(shown["ghost"]) if rest.startswith(shown["ghost"]) else 0
        elif "\n" in ghost and line.strip() and rest.startswith(line):
            verdict, key, length = "first line", "<C-l>", len(line)
        elif word and len(word[0]) >= _LEAST and re.match(re.escape(word[0]) + r"(?!\w)", rest):
            verdict, key, length = "first word", "<C-Right>", len(word[0])
        else:
            return 0
        if len(strokes(rest[:length])) < _LEAST - 1:
            return 0
        at, before = self._offset(), self._text()
        self._neovim.type(key)
        self.keys += 1
        seen["verdict"] = seen["verdict"] if seen["verdict"] == "right" else verdict
        # What was put there may be more than was meant: the keys that take it away again are pressed, too.
        while (put := self._offset() - at) > 0 and not rest.startswith(self._text()[at : at + put]):
            self._neovim.type("<BS>")
            self.keys += 1
        if put <= 0 and self._text() != before:
            # It was another suggestion by the time the key arrived: the person looks again at what is left to do.
            return None
        return max(put, 0)

    def _take_edit(self) -> bool:
        shown = self._shown()
        if shown is None or "ghost" in shown or shown["buffer"]:
            return False
        text = self._text()
        lines = text.split("\n")
        start = sum(len(line) + 1 for line in lines[: shown["row"]])
        start += len(lines[shown["row"]].encode()[: shown["col"]].decode())
        after = text[:start] + shown["new"] + text[start + len(shown["removed"]) :]
        size = cost(text, after)
        if (
            not text.startswith(shown["removed"], start)
            or cost(text, self._wanted) - cost(after, self._wanted) < 0.8 * size
        ):
            return False
        for _ in range(2):
            self._neovim.type("<M-l>")
            self.keys += 1
            if self._text() != text:
                self.offers.setdefault(shown["id"], shown)["verdict"] = "right"
                return True
        return False

    def _shown(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._neovim.lua(_SHOWN)
        return found

    def _text(self) -> str:
        return self._neovim.text() + "\n"

    def _offset(self) -> int:
        row, column = self._neovim.cursor()
        lines = self._neovim.text().split("\n")
        return sum(len(line) + 1 for line in lines[:row]) + len(lines[row].encode()[:column].decode())

    def _around(self) -> list[str]:
        row, column = self._neovim.cursor()
        lines = self._neovim.text().split("\n")
        line = lines[row].encode()
        return [
            *lines[max(0, row - 3) : row],
            line[:column].decode() + "│" + line[column:].decode(),
            *lines[row + 1 : row + 3],
        ]


def _keys(stroke: str) -> str:
    return stroke.replace("<", "<lt>").replace("\n", "<CR>").replace("\t", "<C-v><Tab>")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two keys")
    parser.add_argument("--offers", type=Path)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    folder = Path(tempfile.mkdtemp())
    program, trouble = find_neovim()
    if program is None:
        parser.error(trouble)
    surroundings = environment(folder) | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    with Neovim(program, folder, surroundings=surroundings) as neovim, no_server_stays(folder):
        neovim.seconds = 120.0
        neovim.setup(
            command=REAL, server={"workspace": {"index": True}, "suggest": {}, "backend": {"idle_minutes": 5.0}}
        )
        for before, after in zip(options.files[::2], options.files[1::2], strict=True):
            text, wanted = before.read_text(), after.read_text()
            neovim.files = Path(tempfile.mkdtemp(dir=folder))
            (neovim.files / "calomel.toml").touch()
            person = Person(neovim, text, wanted, after.name, options.pause)
            person.type()
            counts = Counter(
                f"{'ghost' if 'ghost' in each else 'edit'} {each['verdict']}" for each in person.offers.values()
            )
            without = sum(_PLACE_KEYS + len(strokes(new)) for _, _, new in changes(text, wanted))
            counts.update(without=without, with_=person.keys)
            total += counts
            print(after.name, dict(counts), f"saved {1 - person.keys / without:.1%}", flush=True)  # noqa: T201 (its output)
            if options.offers is not None:
                with options.offers.open("a") as file:
                    file.writelines(json.dumps({"file": after.name} | each) + "\n" for each in person.offers.values())
            neovim.clean_up()
    print("all", dict(total), f"saved {1 - total['with_'] / total['without']:.1%}")  # noqa: T201


if __name__ == "__main__":
    main()
