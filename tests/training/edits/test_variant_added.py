"""A variant more: where it is listed first, then what handles it."""

from __future__ import annotations

import pytest
from tests.training.edits.told import inserted, told

from calomel.training.edits.variant_added import variant_added

CASES = {
    "python": (
        """from enum import Enum


class Color(Enum):
    RED = 1
    BLUE = 2


NAMES = {
    Color.RED: "red",
    Color.BLUE: "blue",
}
""",
        "    BLUE = 2\n",
        ["\n    BLUE = 2", '\n    Color.BLUE: "blue",'],
    ),
    "typescript": (
        """enum Color {
  Red,
  Blue,
}

function name(color: Color) {
  switch (color) {
    case Color.Red:
      return "red";
    case Color.Blue:
      return "blue";
  }
}
""",
        "  Blue,\n",
        ["\n  Blue,", '\n    case Color.Blue:\n      return "blue";'],
    ),
    "javascript": (
        """function area(shape) {
  if (shape.kind === "round") {
    return 3;
  } else if (shape.kind === "square") {
    return 4;
  }
  return 0;
}

const KINDS = ["round", "square"];
""",
        None,
        None,
    ),
    "go": (
        """package a

const (
	Red = iota
	Green
	Blue
)

func name(color int) string {
	switch color {
	case Red:
		return "red"
	case Blue:
		return "blue"
	}
	return ""
}
""",
        "\tBlue\n",
        ["\n\tBlue", '\n\tcase Blue:\n\t\treturn "blue"'],
    ),
    "rust": (
        """enum Color {
    Red,
    Blue,
}

fn name(color: Color) -> &'static str {
    match color {
        Color::Red => "red",
        Color::Blue => "blue",
    }
}
""",
        "    Blue,\n",
        ["\n    Blue,", '\n        Color::Blue => "blue",'],
    ),
}


@pytest.mark.parametrize("language", [language for language in CASES if CASES[language][1]])
def test_a_variant_comes_with_its_handler(language: str) -> None:
    text, definition, changes = CASES[language]
    assert definition is not None
    found = [story for story in told(variant_added, language, text) if inserted(story) == changes]
    assert len(found) == 1
    assert found[0].states()[-1] == text
    assert definition not in found[0].text


def test_words_of_a_list_are_told_apart_by_branches() -> None:
    text = 'const KINDS = ["round", "square"];\n' + CASES["javascript"][0].partition("\nconst")[0]
    found = [story for story in told(variant_added, "javascript", text) if ', "square"' in inserted(story)]
    assert len(found) == 1
    assert inserted(found[0])[1] == ' else if (shape.kind === "square") {\n    return 4;\n  }'
    assert "square" not in found[0].text


def test_a_variant_that_nothing_handles_is_no_story() -> None:
    assert told(variant_added, "rust", "enum A {\n    One,\n    Two,\n}\n") == []
