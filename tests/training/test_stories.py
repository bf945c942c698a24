"""What every story of every maker promises, on whole files; stories on disk, and the parts of files they are about."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import calomel.training.edits.functions as python_file
from calomel.training.corpus.shards import CorpusError
from calomel.training.edits.source import Source
from calomel.training.edits.story import (
    REACH,
    Change,
    Story,
    crop,
    read_stories,
    sequential,
    story_of,
    undone,
    write_stories,
)
from calomel.training.edits.synthetic import MAKERS

SCRIPT = """import { a } from './a';

/**
 * Größe: draws.
 * @param {number} width - how wide
 */
export function draw(width: number, label: string, strict = false) {
  const total = measure(width, label);
  const text = `${label} → ${total}`;
  if (strict) {
    report(text, total);
  }
  return { width, total };
}

function measure(width: number, label: string): number {
  return width * label.length;
}

function report(text: string, total: number) {
  console.log('größer', text, total);
}

enum Shape { Round = 'round', Square = 'square' }

export class Canvas {
  private width: number;
  private label: string;

  constructor(width: number, label: string) {
    this.width = width;
    this.label = label;
  }

  paint(shape: Shape) {
    switch (shape) {
      case Shape.Round: return draw(this.width, this.label);
      case Shape.Square: return draw(this.width, 'ß', true);
    }
  }
}

export const main = new Canvas(100, 'main');
"""
FILES = {
    "python": ("a/calls.py", Path(python_file.__file__).read_text(encoding="utf-8").replace("One call.", "Größe 🙂.")),
    "typescript": ("src/a.ts", SCRIPT),
    "javascript": (
        "src/a.js",
        (
            "const größe = 10;\n\nfunction area(width, height, unit) {\n  const total = width * height;\n"
            "  return { total, unit };\n}\n\nfunction show(width) {\n"
            "  console.log('ß', area(width, größe, 'px').total);\n"
            "  console.log('ö', area(width, 10, 'px').total);\n  return area(width, 20, 'px');\n}\n\nshow(10);\n"
        ),
    ),
    "go": (
        "pkg/a.go",
        (
            'package a\n\nimport (\n\t"fmt"\n)\n\n// Row is a größe row.\ntype Row struct {\n\tName string\n'
            "\tSize int\n}\n\n"
            "func NewRow(name string, size int) Row {\n\treturn Row{Name: name, Size: size}\n}\n\n"
            'func (r Row) Show(prefix string) string {\n\treturn prefix + fmt.Sprintf("→ %s %d", r.Name, r.Size)\n}\n\n'
            'func all(size int) []string {\n\tfirst := NewRow("a", size)\n\tsecond := NewRow("ü", 10)\n'
            '\treturn []string{first.Show("-"), second.Show("-")}\n}\n'
        ),
    ),
    "rust": (
        "src/a.rs",
        (
            "use std::fmt;\n\n/// Größe.\npub enum Kind {\n    Wide,\n    Tall,\n}\n\npub struct Row {\n"
            "    name: String,\n"
            "    size: usize,\n}\n\nimpl Row {\n    pub fn build(name: String, size: usize) -> Row {\n"
            "        Row { name, size }\n    }\n\n    fn show(&self, prefix: &str) -> String {\n"
            '        format!("{prefix} → {} {}", self.name, self.size)\n    }\n}\n\n'
            "fn all(size: usize) -> Vec<String> {\n"
            '    let first = Row::build("ü".to_string(), size);\n    let second = Row::build("b".to_string(), 10);\n'
            '    vec![first.show("-"), second.show("-")]\n}\n\nfn of(kind: Kind) -> usize {\n    match kind {\n'
            "        Kind::Wide => 10,\n        Kind::Tall => 20,\n    }\n}\n"
        ),
    ),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("language", FILES)
def test_every_change_applies_inside_of_its_text_and_the_result_parses(language: str, kind: str) -> None:
    path, text = FILES[language]
    for seed in range(8):
        story = MAKERS[kind](Source(path, language, text), random.Random(seed))
        if story is None:
            continue
        assert (story.kind, story.language, story.path) == (kind, language, path)
        current = story.text
        for change, expected in zip(story.changes, story.states()[1:], strict=True):
            assert 0 <= change.start <= change.end <= len(current)
            assert current[change.start : change.end] != change.text
            current = change.apply(current)
            assert current == expected
        assert current != story.text
        assert not Source(path, language, current).has_error
        assert len({change.start for change in story.changes}) <= len(story.text)
        assert max(change.start for change in story.changes) - min(change.start for change in story.changes) < 2 * REACH


def test_changes_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlaps"):
        sequential([Change(0, 3, "a"), Change(2, 4, "b")])
    with pytest.raises(ValueError, match="not inside"):
        Change(2, 9, "").apply("short")


def test_a_story_taken_back_leads_to_the_text_before() -> None:
    source = Source("a.py", "python", "a = 1\nb = a\nc = a\n")
    story = story_of("rename", source, [Change(0, 1, "name"), Change(10, 11, "name"), Change(16, 17, "name")])
    assert story is not None
    text, back = undone(story)
    assert text == story.states()[-1]
    for change in sequential(back):
        text = change.apply(text)
    assert text == story.text


def test_places_too_far_apart_and_results_that_do_not_parse_are_no_story() -> None:
    source = Source("a.py", "python", "a = 1\n" + "b = 2\n" * 3000 + "c = a\n")
    assert (
        story_of("rename", source, [Change(0, 1, "n"), Change(len(source.text) - 2, len(source.text) - 1, "n")]) is None
    )
    assert story_of("rename", source, [Change(0, 1, "(")]) is None
    assert story_of("rename", source, [Change(0, 1, "a")]) is None


LINES = "".join(f"line {number}\n" for number in range(100))


def story(text: str, *changes: Change) -> Story:
    return Story("rename", "python", "a/b.py", text, changes)


def test_stories_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    told = [
        story("größe = 1\n", Change(0, 5, "länge\n")),
        story("a\r\nb\u2028c\n", Change(0, 0, ""), Change(1, 2, "x")),
    ]
    write_stories(tmp_path / "edits.jsonl.zst", told)
    assert list(read_stories(tmp_path / "edits.jsonl.zst")) == told
    assert [path.name for path in tmp_path.iterdir()] == ["edits.jsonl.zst"]


def test_stories_that_are_not_there_are_asked_for_by_their_command(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="calomel edits"):
        list(read_stories(tmp_path / "none.jsonl.zst"))


def test_a_crop_is_whole_lines_anywhere_around_the_changes_and_makes_the_same(tmp_path: Path) -> None:
    at = LINES.index("line 50")
    whole = story(LINES, Change(at, at + 4, "LINE"), Change(at, at, "more\nand more\n"), Change(at + 30, at + 31, ""))
    places = set()
    for seed in range(20):
        cropped = crop(whole, random.Random(seed), 200)
        assert cropped is not None
        assert 150 <= len(cropped.text) <= 200
        head, _, tail = LINES.partition(cropped.text)
        assert head == "" or head.endswith("\n")
        assert [head + state + tail for state in cropped.states()] == list(whole.states())
        places.add(cropped.changes[0].start)
    assert min(places) < 40
    assert max(places) > 120
    assert crop(whole, random.Random(0)) == whole
    far = story(LINES, Change(0, 1, "x"), Change(len(LINES) - 5, len(LINES), ""))
    assert crop(far, random.Random(0), 300) is None
