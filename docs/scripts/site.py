"""What the pages link outside of `docs/` (pages come along, other files are only named), and the search.

A hook of mkdocs, whose events the functions are named after.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parents[2]
# Where they are in the site.
_ASIDE: Final = "repository"
_LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add every page outside that a page links, and those that these link."""
    todo = [(file.src_uri, _docs(config)) for file in files.documentation_pages()]
    while todo:
        source, folder = todo.pop()
        text = (folder / source).read_text(encoding="utf-8")
        place = posixpath.normpath(posixpath.join(_relative(folder), source))
        for match in _LINK.finditer(text):
            target = _outside(place, match[2])
            if target is not None and _is_page(target) and files.get_file_from_path(f"{_ASIDE}/{target}") is None:
                files.append(File.generated(config, f"{_ASIDE}/{target}", abs_src_path=str(ROOT / target)))
                todo.append((target, ROOT))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Lead links of both kinds of pages to where their targets are in the site; what is not in it is only named."""
    here = page.file.src_uri
    place = here.removeprefix(f"{_ASIDE}/") if here.startswith(f"{_ASIDE}/") else f"{_relative(_docs(config))}/{here}"

    def led(match: re.Match[str]) -> str:
        name, link = match[1], match[2]
        path, mark, anchor = link.partition("#")
        if not path or "://" in link or link.startswith("mailto:"):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
        inside = target.removeprefix("docs/") if target.startswith("docs/") else f"{_ASIDE}/{target}"
        if files.get_file_from_path(inside) is None:
            return name
        return f"[{name}]({posixpath.relpath(inside, posixpath.dirname(here) or '.')}{mark}{anchor})"

    return _LINK.sub(led, markdown)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Write the index of the search as a script, which `docs/search.js` loads where pages are opened as files."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"const SEARCH_INDEX = {index};\n", encoding="utf-8")


def _outside(place: str, link: str) -> str | None:
    """The target's path in the repository, when it is none of the site's own pages."""
    path = link.partition("#")[0]
    if not path or "://" in link or link.startswith("mailto:"):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
    return None if target.startswith(("docs/", "..")) else target


def _is_page(target: str) -> bool:
    return target.endswith(".md") and (ROOT / target).is_file()


def _docs(config: MkDocsConfig) -> Path:
    return Path(config.docs_dir).resolve()


def _relative(folder: Path) -> str:
    return folder.relative_to(ROOT).as_posix() if folder != ROOT else "."
