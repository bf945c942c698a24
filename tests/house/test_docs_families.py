"""The tables about families in the documentation are the ones that the program makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from calomel.cli.models import guide_table, state_table
from calomel.families.table import FAMILIES

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


@pytest.mark.parametrize(("name", "made"), [("families", state_table), ("guide", guide_table)])
def test_the_page_has_the_table_that_the_program_makes(name: str, made: object) -> None:
    assert callable(made)
    told = PAGE.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0]

    assert told.strip() == made(FAMILIES).strip(), "docs/scripts/families writes it"


def test_every_test_that_a_family_is_compared_in_is_there() -> None:
    tests = [PAGE.parents[1] / family.facts.parity for family in FAMILIES if family.facts.parity]

    assert [str(test) for test in tests if not test.is_file()] == []
