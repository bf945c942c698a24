"""The same small edit on lines that are alike."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from typing import Final

from rapidfuzz import fuzz

from calomel.training.edits.aimless import is_comment, lines_of
from calomel.training.edits.restored import restored
from calomel.training.edits.source import Source
from calomel.training.edits.story import Change, Story

_LEAST: Final = 3
_MOST: Final = 10
# Lines between two that belong together, and how alike they have to be, in percent.
_GAP: Final = 4
_ALIKE: Final = 55.0
_TRIES: Final = 25
# What a person puts into line after line: the piece is group 1.
_PIECES: Final = tuple(map(re.compile, (
    r"\b(await )\w",
    r"^\s*(export )\w",
    r"^\s*(pub(?:\([a-z]+\))? )\w",
    r"^\s*((?:public|private|protected|readonly|static|const|final|async) )\w",
    r"\b((?:mut|readonly|static|const) )\w",
    r"\w(\?)[:.]",
    r"(\.\w+\(\))(?=[;,)\s]|$)",
    r"(, \w+=[^,()=]+)(?=\)|,)",
    r"(, [^,()\s]+)(?=\))",
    r"\(([\w.&'\"]+, )\w",
    r"\w(: [\w.\[\]|<>]+)(?= =|[,;)]|$)",
    r"( \| (?:None|null|undefined))\b",
    r"\b((?:self|this|\w{2,12})\.)\w",
    r"( as \w+)\b",
    r"(&(?:mut )?)\w",
    r"( `[^`]+`)$",
    r"(,omitempty)\b",
    r"(\?);?$",
    r"([!=]==?)",
    r"\b(r|f|b)[\"']",
    r"\b(new )[A-Z]",
    r"\b([a-z]+_)\w+\(",
    r"(_[a-z]+)\(",
)))  # fmt: skip
# What stood there before instead, by what stands there now; elsewhere nothing did.
_OLDER: Final = {
    "const ": ("let ", "var "), "private ": ("public ", ""), "public ": ("private ", ""), "===": ("==",),
    "!==": ("!=",), "==": (), "!=": (), "=": (), "readonly ": ("",), "protected ": ("private ", ""),
}  # fmt: skip
# A name put instead of another in line after line: now, and before.
_NAMES: Final = {
    "info": ("debug", "warn"), "debug": ("info", "log"), "warn": ("log", "info"), "error": ("warn", "log"),
    "get": ("fetch", "load"), "assertEqual": ("assertEquals", "assertIs"), "assertTrue": ("assert_",),
    "toBe": ("toEqual",), "toEqual": ("toBe",), "Equal": ("EqualValues", "NotEqual"), "NoError": ("Nil",),
    "expect": ("unwrap",), "unwrap": ("expect",), "append": ("add",), "push": ("add", "append"),
    "Errorf": ("Fatalf", "Logf"), "Fatalf": ("Errorf",), "Fatal": ("Error",), "require": ("assert",),
    "assert_eq": ("debug_assert_eq",), "setattr": ("set",), "True": ("False",), "False": ("True",), "true": ("false",),
    "false": ("true",), "test": ("it",), "it": ("test",), "deepEqual": ("equal",), "strictEqual": ("equal",),
    "Sprintf": ("Sprint",), "Printf": ("Print",), "into": ("clone",), "addEventListener": ("on",),
    "delete": ("remove",), "remove": ("delete",), "set": ("put",), "put": ("post",), "post": ("put",),
    "emit": ("trigger",),
}  # fmt: skip
# The same of types, which languages name differently.
_TYPES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "python": {
        "str": ("object", "bytes"), "int": ("float", "str"), "float": ("int",), "bool": ("int",), "Any": ("object",),
        "List": ("list", "Sequence"), "Dict": ("dict", "Mapping"), "list": ("List",), "dict": ("Dict",),
    },
    "typescript": {
        "string": ("any", "unknown"), "number": ("any", "string"), "boolean": ("any",), "unknown": ("any",),
        "type": ("interface",), "interface": ("type",),
    },
    "go": {
        "int": ("int64", "int32"), "int64": ("int", "int32"), "uint32": ("uint64", "int"), "string": ("[]byte",),
        "uint64": ("uint32", "int64"), "float64": ("float32",), "any": ("interface{}",),
    },
    "rust": {
        "u32": ("u64", "i32"), "u64": ("u32", "usize"), "usize": ("u32", "u64"), "i32": ("i64", "u32"),
        "i64": ("i32",), "f32": ("f64",), "f64": ("f32",), "u8": ("u16",), "Rc": ("Arc",), "Arc": ("Rc",),
        "String": ("str",),
    },
}  # fmt: skip
_WORD: Final = re.compile(r"[^\W\d]\w*")


def repeated_edit(source: Source, rng: random.Random) -> Story | None:
    """One edit made on each of several lines, top to bottom. Python, TypeScript, JavaScript, Go, Rust."""
    groups = [group for group in _groups(source) if len(group) >= _LEAST]
    rng.shuffle(groups)
    tries = 0
    for group in groups:
        found = _edits(source, group)
        for removals in rng.sample(found, min(3, len(found))):
            tries += 1
            old = _older(source, removals, rng)
            story = None if old is None else restored("repeated_edit", source, old)
            if story is not None or tries > _TRIES:
                return story
    return None


def _groups(source: Source) -> list[list[tuple[int, int]]]:
    """Lines near each other that are alike, as spans."""
    groups: list[list[tuple[int, int]]] = []
    open_groups: list[tuple[int, str, list[tuple[int, int]]]] = []
    for number, (start, end) in enumerate(lines_of(source.text)):
        line = source.text[start:end]
        if len(line.strip()) < 8 or is_comment(line, source.language):  # noqa: PLR2004 (a bracket, a keyword)
            continue
        open_groups = [each for each in open_groups if number - each[0] <= _GAP]
        indent = len(line) - len(line.lstrip())
        for at, (_, latest, group) in enumerate(open_groups):
            same = len(latest) - len(latest.lstrip()) == indent
            if same and len(group) < _MOST and fuzz.ratio(latest.strip(), line.strip()) >= _ALIKE:
                group.append((start, end))
                open_groups[at] = (number, line, group)
                break
        else:
            group = [(start, end)]
            groups.append(group)
            open_groups.append((number, line, group))
    return groups


def _edits(source: Source, group: list[tuple[int, int]]) -> list[list[Change]]:
    """Pieces that most lines of a group have in common, each as edits that take it out everywhere."""
    found: defaultdict[tuple[int, str], list[Change]] = defaultdict(list)
    known = _NAMES | _TYPES.get(source.language, {})
    for start, end in group:
        line = source.text[start:end]
        for number, pattern in enumerate(_PIECES):
            match = pattern.search(line)
            if match is not None:
                found[number, match[1]].append(Change(start + match.start(1), start + match.end(1), ""))
        for name in set(_WORD.findall(line)) & known.keys():
            at = re.search(rf"(?<![\w'\"]){name}(?![\w'\"])", line)
            if at is not None:
                found[-1, name].append(Change(start + at.start(), start + at.end(), ""))
    return [edits for edits in found.values() if len(edits) >= max(_LEAST, len(group) - 1)]


def _older(source: Source, removals: list[Change], rng: random.Random) -> list[Change] | None:
    """What stood there before the edits; None where nothing sensible could."""
    now = source.text[removals[0].start : removals[0].end]
    choices = _NAMES.get(now) or _TYPES.get(source.language, {}).get(now) or _OLDER.get(now, ("",))
    if not choices:
        return None
    older = rng.choice(choices)
    return [Change(each.start, each.end, older) for each in removals]
