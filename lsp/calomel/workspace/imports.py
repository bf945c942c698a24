"""Which files a program imports: by patterns of its language, matched to the files that are there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

# Imports stand at the top; what comes far below is rare and costs time.
_HEAD: Final = 30_000
_MOST: Final = 60
_PYTHON: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<spec>[.\w]+)[ \t]+import[ \t]+(?:\((?P<many>[^)]*)\)|(?P<names>[^\n#]*))"
    r"|import[ \t]+(?P<plain>[^\n#]+))",
    re.MULTILINE,
)
_SCRIPT: Final = re.compile(r"""(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*['"](?P<spec>[^'"\n]+)['"]""")
_GO: Final = re.compile(r'^[ \t]*(?:import[ \t]+)?(?:[\w.]+[ \t]+)?"(?P<spec>[\w./~-]+)"[ \t]*(?://.*)?$', re.MULTILINE)
_RUST: Final = re.compile(
    r"^[ \t]*(?:pub(?:\([^)]*\))?[ \t]+)?(?:use[ \t]+(?P<spec>[\w:]+)|mod[ \t]+(?P<mod>\w+)[ \t]*;)", re.MULTILINE
)
_JAVA: Final = re.compile(r"^[ \t]*import[ \t]+(?:static[ \t]+)?(?P<spec>[\w.]+)", re.MULTILINE)
_C: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<](?P<spec>[^">\n]+)[">]', re.MULTILINE)
_RUBY: Final = re.compile(r"""^[ \t]*require(?P<near>_relative)?[ \t(]+['"](?P<spec>[^'"\n]+)['"]""", re.MULTILINE)
_SHELL: Final = re.compile(r"""^[ \t]*(?:source|\.)[ \t]+["']?(?P<spec>[\w./-]+)""", re.MULTILINE)
_SCRIPT_ENDS: Final = (
    "", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", "/index.ts", "/index.tsx", "/index.js", "/index.jsx",
)  # fmt: skip

# The files whose last part is a name, absolute.
Named = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Import:
    """One import as it is written: alternatives of a path's end, the best first; `near` ones belong to the folder."""

    ends: tuple[str, ...]
    near: bool = False


def imports_in(text: str, family: str) -> tuple[Import, ...]:
    """What a program of a family of languages (`calomel.workspace.segment.family_of`) imports, in its order."""
    reader = _READERS.get(family)
    found: dict[Import, None] = {}
    for each in () if reader is None else reader(text[:_HEAD]):
        found[each] = None
        if len(found) >= _MOST:
            break
    return tuple(found)


def resolve(wanted: Import, path: str, named: Named) -> tuple[str, ...]:
    """The files that an import of the file `path` means, absolute; those closest to it where several fit."""
    folder = posixpath.dirname(path)
    for end in wanted.ends:
        if wanted.near:
            exact = posixpath.normpath(posixpath.join(folder, end))
            if exact in named(posixpath.basename(exact)):
                return (exact,)
            continue
        fitting = [each for each in named(posixpath.basename(end)) if each.endswith("/" + end) and each != path]
        if fitting:
            return (min(fitting, key=lambda each: (-len(posixpath.commonpath((each, path))), each)),)
    return ()


def _python(text: str) -> Iterator[Import]:
    for match in _PYTHON.finditer(text):
        if match["plain"] is not None:
            for each in match["plain"].split(","):
                yield Import(_python_ends(each.split()[0].replace(".", "/") if each.split() else ""))
            continue
        spec = match["spec"]
        module = spec.lstrip(".")
        up = len(spec) - len(module)
        base = module.replace(".", "/")
        if up:
            base = posixpath.join("../" * (up - 1), base) if base else "../" * (up - 1)
        listed = match["many"] if match["many"] is not None else match["names"]
        names = [words[0] for words in (name.split() for name in listed.split(",")) if words]
        # A name may be a module of the package, or stand in the package's own file.
        for name in names:
            if name.isidentifier():
                yield Import(_python_ends(posixpath.join(base, name), module_only=True), near=up > 0)
        yield Import(_python_ends(base), near=up > 0)


def _python_ends(base: str, *, module_only: bool = False) -> tuple[str, ...]:
    if not base:
        return ("__init__.py",)
    return (f"{base}.py", f"{base}.pyi") if module_only else (f"{base}.py", f"{base}/__init__.py", f"{base}.pyi")


def _script(text: str) -> Iterator[Import]:
    for match in _SCRIPT.finditer(text):
        spec = match["spec"]
        if spec.startswith("."):
            # What is compiled from TypeScript is imported by the name that it will have.
            bare = re.sub(r"\.(?:js|mjs|jsx)$", "", spec)
            ends = dict.fromkeys([spec, *(bare + end for end in _SCRIPT_ENDS), *(spec + end for end in _SCRIPT_ENDS)])
            yield Import(tuple(ends), near=True)
        elif "/" in spec and not spec.startswith("node:"):
            bare = spec.removeprefix("@/").removeprefix("~/")
            yield Import(tuple(bare + end for end in _SCRIPT_ENDS if end))


def _go(text: str) -> Iterator[Import]:
    for match in _GO.finditer(text):
        parts = match["spec"].split("/")
        # The folder's own file often has its name.
        name = parts[-1]
        ends = [f"{'/'.join(parts[-2:])}/{name}.go"] if len(parts) > 1 else []
        yield Import((*ends, f"{name}/{name}.go", f"{name}/doc.go"))


def _rust(text: str) -> Iterator[Import]:
    for match in _RUST.finditer(text):
        if match["mod"] is not None:
            yield Import((f"{match['mod']}.rs", f"{match['mod']}/mod.rs"), near=True)
            continue
        parts = [part for part in match["spec"].split("::") if part and part not in {"crate", "self"}]
        near = bool(parts) and parts[0] == "super"
        parts = [part for part in parts if part != "super"]
        if parts:
            tails = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
            yield Import(tuple(end for tail in tails for end in (f"{tail}.rs", f"{tail}/mod.rs")), near=near)


def _java(text: str) -> Iterator[Import]:
    for match in _JAVA.finditer(text):
        yield Import((match["spec"].strip(".").replace(".", "/") + ".java",))


def _c(text: str) -> Iterator[Import]:
    for match in _C.finditer(text):
        yield Import((match["spec"],), near=True)
        yield Import((match["spec"].lstrip("./"),))


def _ruby(text: str) -> Iterator[Import]:
    for match in _RUBY.finditer(text):
        yield Import((match["spec"].removesuffix(".rb") + ".rb",), near=match["near"] is not None)


def _shell(text: str) -> Iterator[Import]:
    for match in _SHELL.finditer(text):
        yield Import((match["spec"],), near=True)


_READERS: Final[dict[str, Callable[[str], Iterator[Import]]]] = {
    "python": _python,
    "javascript": _script,
    "go": _go,
    "rust": _rust,
    "java": _java,
    "c": _c,
    "ruby": _ruby,
    "bash": _shell,
}
