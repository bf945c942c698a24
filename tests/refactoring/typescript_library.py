"""TypeScript's language service in one Node.js, and the sources below the extension's node_modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from tests.refactoring.library import LibraryError, Name

from calomel.prompts.parts import Edit, edited

_HERE: Final = Path(__file__).parent
_MODULES: Final = _HERE.parents[1] / "editors" / "vscode" / "node_modules"
_ENDINGS: Final = {"typescript": (".ts", ".mts", ".cts", ".tsx"), "javascript": (".js", ".mjs", ".cjs", ".jsx")}


def found_programs() -> tuple[str, Path] | str:
    """Node.js and the folder of packages with TypeScript, or what is missing."""
    modules = Path(os.environ.get("CALOMEL_NODE_MODULES") or _MODULES)
    node = shutil.which("node") or shutil.which("node", path=str(Path.home() / ".cache/calomel/vscode/node/bin"))
    if node is None:
        return "Node.js is not installed"
    if not (modules / "typescript").is_dir():
        return f"{modules} has no TypeScript: `make vsix` installs it"
    return node, modules


class LanguageService:
    """Renames in one file as if it were a whole program."""

    name = "TypeScript"

    def __init__(self, language: Literal["typescript", "javascript"]) -> None:
        """Raises LibraryError where something is not installed."""
        found = found_programs()
        if isinstance(found, str):
            raise LibraryError(found)
        node, self.root = found
        self._language = language
        self._node = subprocess.Popen(
            [node, str(_HERE / "language_service.js"), str(self.root / "typescript")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def files(self) -> Sequence[Path]:
        endings = _ENDINGS[self._language]
        every = (path for ending in endings for path in self.root.rglob(f"*{ending}"))
        return sorted(path for path in every if ".d." not in path.name and ".min." not in path.name and path.is_file())

    def names(self, path: Path, text: str) -> Sequence[Name]:
        return [Name(kind, start, old) for kind, start, old in self._ask("names", path, text)]

    def renamed(self, path: Path, text: str, name: Name, new: str) -> str:
        places = self._ask("rename", path, text, start=name.start, name=new)
        return edited(text, sorted(Edit(*place) for place in places))

    def unknown(self, path: Path, text: str) -> frozenset[str]:
        return frozenset(self._ask("unknown", path, text))

    def close(self) -> None:
        self._node.communicate()

    def _ask(self, what: str, path: Path, text: str, **details: Any) -> list[Any]:
        stdin, stdout = self._node.stdin, self._node.stdout
        if stdin is None or stdout is None:
            raise LibraryError("Node.js has no pipes")
        # Offsets of JavaScript are those of UTF-16.
        if not text.isascii() and any(ord(letter) > 0xFFFF for letter in text):
            raise LibraryError("it has letters outside the first plane")
        stdin.write(json.dumps({"do": what, "file": f"/{path.name}", "text": text, **details}) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise LibraryError("Node.js ended")
        answer = json.loads(line)
        if "error" in answer:
            raise LibraryError(answer["error"])
        found: list[Any] = answer["found"]
        return found
