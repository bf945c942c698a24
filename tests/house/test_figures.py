"""Every figure of quality and speed on a page is one that a bench wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.house.pages import ROOT, name, prose

from calomel.bench.figures import Figures

RESULTS = ROOT / "docs" / "results"
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{page}.md" for page in ("quality", "comparison", "faq", "models"))]
CARD = ROOT / "model/calomel/weights/nano/MODEL_CARD.md"
_TABLE = re.compile(r"<!-- (\w+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)
_FIGURE = re.compile(r"\d+(?:\.\d+)? (?:%|ms)|(?<![\w.])(?<!\*\* )0\.\d\d+|\b\d+ of \d+\b")


@pytest.mark.parametrize("page", [*PAGES, CARD], ids=name)
def test_the_tables_are_those_of_the_results(page: Path) -> None:
    figures = Figures(RESULTS)
    tables = {title: text for title, text in _TABLE.findall(page.read_text(encoding="utf-8")) if title in figures.names}
    for title, text in tables.items():
        assert text.strip() == figures.table(title, page.parent), f"calomel bench report docs/results {name(page)}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_figures_outside_of_the_tables_are_in_them(page: Path) -> None:
    figures = Figures(RESULTS)
    known = "\n".join(figures.table(title, ROOT) for title in figures.names)
    assert [found for found in _FIGURE.findall(_TABLE.sub("", prose(page))) if found not in known] == []


def test_a_result_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "tables.toml").write_text(
        '[t]\ncolumns = ["q"]\nrows = [{ of = "bench-x", cells = ["{bench-x a .0f}"] }]\n'
    )
    with pytest.raises(ValueError, match=r"bench-x\.json is missing: run its bench"):
        Figures(tmp_path).table("t", tmp_path)
    (tmp_path / "bench-x.json").write_text('{"date": "2026-01-01", "b": 1}')
    with pytest.raises(ValueError, match=r"has no a: run its bench again"):
        Figures(tmp_path).table("t", tmp_path)
