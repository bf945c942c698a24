"""rope, and the installed packages as files that nobody here wrote."""

from __future__ import annotations

import ast
import builtins
import signal
import symtable
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import rope
from rope.base.project import Project
from rope.refactor.rename import Rename
from tests.refactoring.library import LibraryError, Name

_OWN: Final = frozenset({"self", "cls", "_"})
# Known in every module.
_KNOWN: Final = frozenset({*dir(builtins), "__file__", "__path__", "__class__", "__annotations__"})


# Of a rename; some files take rope hours.
_SECONDS: Final = 20.0


@contextmanager
def _limited() -> Iterator[None]:
    """Raises TimeoutError in this thread when the time is over, on systems with an alarm."""

    if sys.platform == "win32":
        yield
        return

    def ended(*_: object) -> None:
        raise TimeoutError(f"no answer within {_SECONDS:.0f} s")

    before = signal.signal(signal.SIGALRM, ended)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Rope:
    """Renames in one file as if it were a whole project."""

    name = "rope"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="calomel-rope-")
        with _silence():
            self._project = Project(self._folder.name, ropefolder=None)

    def files(self) -> Sequence[Path]:
        root = self.root
        return [path for path in sorted(root.rglob("*.py")) if ".dist-info" not in str(path)]

    @property
    def root(self) -> Path:
        return Path(rope.__file__).parents[1]

    def names(self, path: Path, text: str) -> Sequence[Name]:
        tree = _parsed(text)
        starts = [0]
        for line in text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        lines = text.split("\n")

        def at(row: int, column: int) -> int:
            return starts[row - 1] + len(lines[row - 1].encode()[:column].decode())

        found = [Name(kind, at(row, column), name) for kind, row, column, name in _names(tree, lines)]
        return [each for each in dict.fromkeys(found) if text.startswith(each.old, each.start)]

    def renamed(self, path: Path, text: str, name: Name, new: str) -> str:
        file = Path(self._folder.name) / "drawn.py"
        file.write_text(text, encoding="utf-8", newline="")
        resource = self._project.get_resource("drawn.py")
        self._project.validate()
        try:
            with _silence(), _limited():
                changes = Rename(self._project, resource, name.start).get_changes(new, docs=False)
        except Exception as error:
            raise LibraryError(f"{type(error).__name__}: {error}") from error
        (change,) = [each for each in changes.changes if hasattr(each, "new_contents")] or [None]
        if change is None:
            raise LibraryError("it changes nothing")
        return str(change.new_contents)

    def unknown(self, path: Path, text: str) -> frozenset[str]:
        _parsed(text)
        with _silence():
            top = symtable.symtable(text, str(path), "exec")
        declared = {each.get_name() for each in top.get_symbols() if each.is_assigned() or each.is_imported()}
        declared |= {each.get_name() for each in top.get_symbols() if each.is_namespace()}
        declared |= {name for table in _tables(top) for name in _globals(table)}
        if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(ast.parse(text))):
            return frozenset()
        used = {
            each.get_name()
            for table in _tables(top)
            for each in table.get_symbols()
            if each.is_referenced() and (each.is_global() or table is top)
        }
        return frozenset(used - declared - _KNOWN)

    def close(self) -> None:
        with _silence():
            self._project.close()
        self._folder.cleanup()


@contextmanager
def _silence() -> Iterator[None]:
    """Their warnings, about what they call themselves and what they parse, are no error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _parsed(text: str) -> ast.Module:
    try:
        with _silence():
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise LibraryError(f"it does not parse: {error}") from error


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    """Names that a function declares `global` and assigns."""
    yield from (each.get_name() for each in table.get_symbols() if each.is_declared_global() and each.is_assigned())


def _names(tree: ast.Module, lines: Sequence[str]) -> Iterator[tuple[str, int, int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _of_function(node)
        elif isinstance(node, ast.ClassDef):
            yield from _of_class(node, lines)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield ("definition", *_behind_keyword(node, lines), node.name)


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, int, int, str]]:
    arguments = node.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if each.arg not in _OWN:
            yield "parameter", each.lineno, each.col_offset, each.arg
    taken = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    taken |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None}
    outer: set[str] = set()
    for inner in _own_nodes(node):
        if isinstance(inner, ast.Global | ast.Nonlocal):
            outer.update(inner.names)
    for inner in _own_nodes(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and inner.id not in taken | outer | _OWN:
            taken.add(inner.id)
            yield "local", inner.lineno, inner.col_offset, inner.id


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's own scope, in the order of the file."""
    for child in ast.iter_child_nodes(node):
        if isinstance(
            child,
            ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.ListComp | ast.SetComp
            | ast.DictComp | ast.GeneratorExp,
        ):  # fmt: skip
            continue
        yield child
        yield from _own_nodes(child)


def _of_class(node: ast.ClassDef, lines: Sequence[str]) -> Iterator[tuple[str, int, int, str]]:
    seen: set[str] = set()
    for method in node.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not method.name.startswith("__") and method.name not in seen:
            seen.add(method.name)
            yield ("member", *_behind_keyword(method, lines), method.name)
        for inner in ast.walk(method):
            if (
                isinstance(inner, ast.Attribute)
                and isinstance(inner.ctx, ast.Store)
                and isinstance(inner.value, ast.Name)
                and inner.value.id == "self"
                and inner.attr not in seen
                and inner.value.end_col_offset is not None
                and inner.lineno == inner.value.lineno == inner.end_lineno
            ):
                seen.add(inner.attr)
                yield "member", inner.lineno, inner.value.end_col_offset + 1, inner.attr


def _behind_keyword(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, lines: Sequence[str]
) -> tuple[int, int]:
    line = lines[node.lineno - 1].encode()
    return node.lineno, line.find(node.name.encode(), node.col_offset + len("def"))
