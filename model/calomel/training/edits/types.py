"""Types that people put in the place of others."""

from __future__ import annotations

import random
import re
from typing import Final

_PYTHON: Final[dict[str, tuple[str, ...]]] = {
    "int": ("float", "str", "int | None"),
    "float": ("int", "float | None", "Decimal"),
    "str": ("bytes", "str | None", "Path", "int"),
    "bool": ("int", "bool | None", "str"),
    "bytes": ("str", "bytearray", "memoryview", "bytes | None"),
    "dict": ("Mapping", "MutableMapping"),
    "list": ("tuple", "Sequence", "Iterable"),
    "Any": ("object",),
    "object": ("Any",),
    "Path": ("str", "PurePath"),
}
_SCRIPT: Final[dict[str, tuple[str, ...]]] = {
    "string": ("number", "string | null", "string | undefined", "URL", "string[]"),
    "number": ("string", "bigint", "number | null", "number | undefined"),
    "boolean": ("string", "number", "boolean | null"),
    "any": ("unknown", "object"),
    "unknown": ("any",),
    "object": ("Record<string, unknown>", "unknown"),
    "Function": ("() => void", "(...args: unknown[]) => unknown"),
    "Date": ("number", "string"),
    "Buffer": ("Uint8Array",),
    "Uint8Array": ("Buffer", "ArrayBuffer"),
}
_GO: Final[dict[str, tuple[str, ...]]] = {
    "int": ("int64", "uint", "int32", "uint64"),
    "int32": ("int64", "int", "uint32"),
    "int64": ("int", "uint64", "time.Duration"),
    "uint": ("uint64", "int", "uint32"),
    "uint32": ("uint64", "int32", "uint"),
    "uint64": ("int64", "uint32", "uint"),
    "string": ("[]byte", "*string", "fmt.Stringer"),
    "[]byte": ("string", "io.Reader"),
    "float64": ("float32", "int64"),
    "float32": ("float64",),
    "bool": ("*bool", "int"),
    "interface{}": ("any",),
    "any": ("interface{}",),
    "error": ("*Error",),
}
_RUST: Final[dict[str, tuple[str, ...]]] = {
    "u8": ("u16", "u32", "char"),
    "u16": ("u32", "u8", "usize"),
    "u32": ("u64", "usize", "i32"),
    "u64": ("u32", "usize", "u128", "i64"),
    "usize": ("u32", "u64", "isize", "Option<usize>"),
    "i32": ("i64", "u32", "isize"),
    "i64": ("i32", "u64", "i128"),
    "f32": ("f64",),
    "f64": ("f32",),
    "bool": ("Option<bool>", "u8"),
    "String": ("Box<str>", "Arc<str>", "Option<String>", "PathBuf"),
    "&str": ("&[u8]", "String", "impl AsRef<str>", "&Path"),
    "&'static str": ("String", "Cow<'static, str>"),
    "&[u8]": ("&str", "Vec<u8>", "impl AsRef<[u8]>"),
    "Vec<u8>": ("Bytes", "String", "Box<[u8]>"),
    "&Path": ("&str", "&PathBuf", "impl AsRef<Path>"),
    "PathBuf": ("String", "Arc<Path>"),
}
_TABLES: Final = {"python": _PYTHON, "typescript": _SCRIPT, "go": _GO, "rust": _RUST}
# What surrounds a type can change, too: each pattern and what takes its place.
_SHAPES: Final[dict[str, tuple[tuple[str, tuple[str, ...]], ...]]] = {
    "python": (
        (r"Optional\[([^\[\]]+)\]", (r"\1 | None", r"\1")),
        (r"(\w+) \| None", (r"\1", r"Optional[\1]")),
        (r"[Ll]ist\[(.+)\]", (r"Sequence[\1]", r"tuple[\1, ...]", r"set[\1]", r"Iterable[\1]", r"list[\1] | None")),
        (r"[Dd]ict\[(.+)\]", (r"Mapping[\1]", r"MutableMapping[\1]", r"OrderedDict[\1]")),
        (r"[Tt]uple\[([^,\[\]]+), \.\.\.\]", (r"list[\1]", r"Sequence[\1]", r"frozenset[\1]")),
        (r"(?:Sequence|Iterable)\[(.+)\]", (r"list[\1]", r"tuple[\1, ...]", r"Collection[\1]", r"Iterator[\1]")),
        (r"[Ss]et\[(.+)\]", (r"frozenset[\1]", r"list[\1]")),
        (r"([A-Z]\w+)", (r"\1 | None", r"type[\1]", r"list[\1]", r"Sequence[\1]")),
        (r'"([A-Z]\w+)"', (r"\1", r'"\1 | None"')),
    ),
    "typescript": (
        (r"(\w+)\[\]", (r"readonly \1[]", r"Set<\1>", r"Array<\1>", r"Iterable<\1>")),
        (r"readonly (\w+)\[\]", (r"\1[]", r"ReadonlySet<\1>")),
        (r"Array<(.+)>", (r"ReadonlyArray<\1>", r"Set<\1>", r"Iterable<\1>")),
        (r"Record<(.+)>", (r"Map<\1>", r"Partial<Record<\1>>")),
        (r"Map<(.+)>", (r"ReadonlyMap<\1>", r"Record<\1>")),
        (r"(\w+) \| (?:null|undefined)", (r"\1", r"Partial<\1>")),
        (r"([A-Z]\w+)", (r"\1 | null", r"\1 | undefined", r"Readonly<\1>", r"Partial<\1>", r"\1[]")),
        (r"([A-Z]\w+<\w+>)", (r"\1 | null", r"\1 | undefined", r"Readonly<\1>", r"\1[]")),
    ),
    "go": (
        (r"\[\](\w+)", (r"[]*\1", r"map[string]\1", r"...\1")),
        (r"\[\]\*(\w+)", (r"[]\1", r"map[string]*\1")),
        (r"\*((?:\w+\.)?[A-Z]\w*)", (r"\1", r"[]*\1")),
        (r"map\[string\](\w+)", (r"map[string][]\1", r"map[string]*\1", r"[]\1")),
        (r"((?:\w+\.)?[A-Z]\w*)", (r"*\1", r"[]\1")),
    ),
    "rust": (
        (r"Vec<(.+)>", (r"Box<[\1]>", r"VecDeque<\1>", r"Arc<[\1]>", r"HashSet<\1>")),
        (r"Option<(.+)>", (r"\1", r"Result<\1, Error>")),
        (r"&\[(.+)\]", (r"Vec<\1>", r"&mut [\1]", r"impl Iterator<Item = \1>")),
        (r"&mut ([A-Z][\w:]*)", (r"&\1", r"\1")),
        (r"&([A-Z][\w:]*)", (r"&mut \1", r"\1", r"Arc<\1>", r"Rc<\1>", r"Option<&\1>")),
        (r"Box<(.+)>", (r"Arc<\1>", r"Rc<\1>", r"\1")),
        (r"Rc<(.+)>", (r"Arc<\1>", r"Box<\1>")),
        (r"HashMap<(.+)>", (r"BTreeMap<\1>", r"IndexMap<\1>")),
        (r"((?:\w+::)?[A-Z]\w+)", (r"Option<\1>", r"&\1", r"Box<\1>", r"Arc<\1>", r"Vec<\1>")),
    ),
}


def other_type(language: str, kind: str, rng: random.Random) -> str | None:
    """A type that can take the place of `kind`; None for one that nothing is known about."""
    table = _TABLES.get(language, {})
    if kind in table:
        return rng.choice(table[kind])
    for pattern, others in _SHAPES.get(language, ()):
        found = re.fullmatch(pattern, kind)
        if found is not None:
            made = found.expand(rng.choice(others))
            return made if made != kind else None
    return None
