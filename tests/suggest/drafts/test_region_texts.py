from __future__ import annotations

from calomel.suggest.drafts.evidence import EditDraft
from calomel.suggest.drafts.propose import region_texts

TEXT = "a(x)\nb(x)\nc(x)\n"


def draft(at: str, new: str, maker: str = "rename", support: int = 1) -> EditDraft:
    start = TEXT.index(at)
    return EditDraft(start, start + len(at), new, maker, support)


def test_a_region_becomes_what_all_drafts_of_one_maker_make_of_it_or_one_alone() -> None:
    found = region_texts(TEXT, 0, 10, [draft("a(x", "a(y", support=2), draft("b(x", "b(y"), draft("c(x", "c(y")])
    assert [(each.draft.text, each.draft.maker, each.support) for each in found] == [
        ("a(y)\nb(y)\n", "rename", 1), ("a(y)\nb(x)\n", "rename", 2), ("a(x)\nb(y)\n", "rename", 1),
    ]  # fmt: skip


def test_the_same_text_of_two_makers_is_judged_once() -> None:
    found = region_texts(TEXT, 0, 5, [draft("a(x", "a(y"), draft("a(x)", "a(y)", "shape")])
    assert [each.draft.maker for each in found] == ["rename"]


def test_drafts_elsewhere_and_too_many_are_left_out() -> None:
    assert region_texts(TEXT, 0, 5, [draft("c(x", "c(y")]) == ()
    assert len(region_texts(TEXT, 0, 5, [draft("x", name) for name in "klmnopqrs"])) == 6


def test_a_new_line_belongs_to_the_lines_behind_it() -> None:
    new = EditDraft(5, 5, "n()\n", "repeated")
    assert region_texts(TEXT, 0, 5, [new]) == ()
    assert [each.draft.text for each in region_texts(TEXT, 5, 10, [new])] == ["n()\nb(x)\n"]
