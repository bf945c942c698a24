from __future__ import annotations

from calomel.prompts.edit_prompt import EditPrompt
from calomel.prompts.parts import Excerpt, Hunk
from calomel.selectivity.proposal import Recent
from calomel.suggest.recent import past_of
from calomel.suggest.stateless import masked, named


def recent(text: str, hunks: list[Hunk]) -> tuple[Recent, ...]:
    return past_of(text, tuple(hunks), None).edited


def test_secrets_are_masked_everywhere() -> None:
    def mask(text: str) -> str:
        return text.replace("KEY", "***")

    prompt = EditPrompt(
        "a.py", "KEY\n", "x\n", "", None, (Hunk("a.py", 0, "KEY\n", "x\n"),), (Excerpt("b.py", 0, "KEY\n"),)
    )

    shown = masked(prompt, mask)

    assert (shown.prefix, shown.region, shown.suffix) == ("***\n", "x\n", "")
    assert "KEY" not in shown.edits[0].before + shown.related[0].text


def test_an_edit_of_the_file_under_its_longer_or_shorter_name_is_its_own() -> None:
    hunks = (Hunk("src/a.py", 0, "x\n", "y\n"), Hunk("other_a.py", 0, "x\n", "y\n"), Hunk("a.py", 0, "x\n", "y\n"))

    bare = named(EditPrompt("a.py", "", "y\n", "", None, hunks)).edits
    absolute = named(EditPrompt("/home/me/src/a.py", "", "y\n", "", None, hunks)).edits

    assert [hunk.path for hunk in bare] == ["a.py", "other_a.py", "a.py"]
    assert [hunk.path for hunk in absolute] == ["/home/me/src/a.py", "other_a.py", "/home/me/src/a.py"]


def test_the_clients_best_snippet_stands_next_to_the_file() -> None:
    prompt = EditPrompt("a.py", "", "x\n", "", None, (), (Excerpt("best.py", 0, "1\n"), Excerpt("other.py", 0, "2\n")))

    assert [excerpt.path for excerpt in masked(prompt, str).related] == ["other.py", "best.py"]


def test_what_an_edit_did_is_found_where_it_stands_now() -> None:
    text = "a = 1\nb = 2\na = 1\n"

    assert recent(text, [Hunk("a.py", 2, "a = 0\n", "a = 1\n")]) == (Recent(16, 17, "0", "1"),)


def test_several_changes_of_one_edit_are_each_in_their_place() -> None:
    text = "call(one, two)\nsame\nlast = 3\n"

    found = recent(text, [Hunk("a.py", 0, "call(o, two)\nsame\nlast = 33\n", text)])

    assert [(text[done.start : done.end], done.removed) for done in found] == [("one", "o"), ("3", "33")]


def test_a_made_up_line_number_finds_the_only_place() -> None:
    text = "first\n" * 50 + "total = 2\n"

    (found,) = recent(text, [Hunk("a.py", 0, "total = 1\n", "total = 2\n")])

    assert text[found.start : found.end] == "2"


def test_a_deletion_stands_at_its_line_and_what_is_gone_again_nowhere() -> None:
    assert recent("a\nc\n", [Hunk("a.py", 1, "b\n", "")]) == (Recent(2, 2, "b\n", ""),)
    assert recent("a\n", [Hunk("a.py", 0, "x\n", "gone\n")]) == ()
    assert recent("a\n", [Hunk("a.py", 900, "b\n", "")]) == (Recent(2, 2, "b\n", ""),)
