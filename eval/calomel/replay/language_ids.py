"""What editors call the language of a file, by its name."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

PLAIN: Final = "plaintext"
# https://code.visualstudio.com/docs/languages/identifiers
_BY_SUFFIX: Final = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), "python"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    ".jsx": "javascriptreact",
    ".tsx": "typescriptreact",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".kt": "kotlin",
    ".swift": "swift",
    ".scala": "scala",
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx"), "cpp"),
    ".cs": "csharp",
    **dict.fromkeys((".rb", ".rake"), "ruby"),
    ".php": "php",
    ".lua": "lua",
    **dict.fromkeys((".sh", ".bash", ".zsh"), "shellscript"),
    ".json": "json",
    **dict.fromkeys((".yml", ".yaml"), "yaml"),
    ".toml": "toml",
    **dict.fromkeys((".html", ".htm"), "html"),
    ".svelte": "svelte",
    ".vue": "vue",
    ".css": "css",
    ".scss": "scss",
    ".sql": "sql",
    ".tf": "terraform",
    ".md": "markdown",
    ".xml": "xml",
    ".txt": PLAIN,
}
_BY_NAME: Final = {"dockerfile": "dockerfile", "makefile": "makefile"}


def language_of(path: str) -> str:
    """The language id for a path with forward slashes; `plaintext` when nothing is known."""
    name = PurePosixPath(path)
    return _BY_NAME.get(name.name.lower()) or _BY_SUFFIX.get(name.suffix.lower(), PLAIN)


def suffix_of(language_id: str) -> str:
    """A suffix of files in this language, `.txt` when none is known."""
    return next((suffix for suffix, language in _BY_SUFFIX.items() if language == language_id), ".txt")
