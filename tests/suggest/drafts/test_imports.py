from __future__ import annotations

from tests.suggest.drafts.moment import lines

from calomel.prompts.parts import text_hunks
from calomel.suggest.drafts.propose import drafts

GO = 'package a\n\nimport (\n\t"errors"\n\t"os"\n)\n\nfunc f() {\n}\n'


def imported(path: str, text: str, old: str, new: str) -> list[str]:
    after = text.replace(old, new, 1)
    found = drafts(after, text_hunks(path, text, after), after.index(new), path)
    return [lines(after, draft) for draft in found if draft.maker == "imports"]


def test_gos_packages_stand_in_the_order_of_the_alphabet() -> None:
    after = GO.replace("{\n}", '{\n\tfmt.Println("x")\n}')
    (draft,) = drafts(after, text_hunks("a.go", GO, after), len(after) - 3, "a.go")
    assert draft.apply(after).startswith('package a\n\nimport (\n\t"errors"\n\t"fmt"\n\t"os"\n)')
    assert imported("a.go", GO, "{\n}", "{\n\tx := filepath.Join(a)\n}") == ['\t"path/filepath"']


def test_names_that_are_known_or_made_here_are_not_imported() -> None:
    assert imported("a.go", GO, "{\n}", "{\n\tfmt := a.fmt\n\tfmt.Println()\n}") == []
    assert imported("a.go", GO, "{\n}", '{\n\tlog("fmt.Println")  // fmt.Println\n}') == []
    assert imported("a.go", GO, "{\n}", "{\n\tos.Exit(1)\n}") == []
    assert imported("a.py", GO, "{\n}", "{\n\tfmt.Println()\n}") == []


def test_the_first_import_stands_below_the_name_of_the_package() -> None:
    text = "// Package a.\npackage a\n\nfunc f() {\n\tpass\n}\n"
    after = text.replace("pass", 'fmt.Println("x")')
    (draft,) = drafts(after, text_hunks("a.go", text, after), after.index("fmt"), "a.go")
    assert 'package a\n\nimport "fmt"\n\nfunc' in draft.apply(after)
