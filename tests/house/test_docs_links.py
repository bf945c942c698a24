"""Every link of the documentation leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.house.pages import ROOT, anchors, links, name, pages

# As much as a name of the net needs to be one; whether somebody answers there is not asked.
_HOST = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")


@pytest.mark.parametrize("page", pages(), ids=name)
def test_links_inside_lead_to_a_file_and_its_heading(page: Path) -> None:
    lost = []
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (parts.fragment and parts.fragment not in anchors(target)):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", pages(), ids=name)
def test_links_outside_are_well_formed_and_encrypted(page: Path) -> None:
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme not in {"", "mailto"}:
            assert parts.scheme == "https", link
            assert _HOST.fullmatch(parts.hostname or ""), link
            assert parts.username is None, link


def test_every_page_of_the_documentation_can_be_found_from_its_index() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "docs" / "index.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = [(page.parent / urlsplit(link).path).resolve() for link in links(page) if not urlsplit(link).scheme]
        todo += [target for target in targets if target.suffix == ".md" and target.exists()]
        # A link to a folder shows what lies in it.
        todo += [file for target in targets if target.is_dir() for file in target.glob("*.md")]
    wanted = [path for path in pages() if "docs" in path.parts and "decisions" not in path.parts]
    assert [name(path) for path in wanted if path not in seen] == []


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda path: path.name)
def test_pictures_load_nothing_and_suit_light_and_dark(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' )]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in text
    assert "prefers-color-scheme:dark" in text
    assert "<title>" in text
