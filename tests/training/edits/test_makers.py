"""All makers together."""

from __future__ import annotations

import pytest

from calomel.training.edits.makers import MAKERS


@pytest.mark.parametrize("kind", MAKERS)
def test_a_kind_is_the_name_of_its_maker(kind: str) -> None:
    assert MAKERS[kind].__name__ == kind
    assert MAKERS[kind].__module__ == f"calomel.training.edits.{kind}"
