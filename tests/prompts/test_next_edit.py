"""The formats that checkpoints were trained on for next edits, byte for byte as their makers publish them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.prompts.next_edit import EDIT_FORMATS, format_called, write_sweep
from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts
from calomel.prompts.zeta import parse_zeta, write_zeta

UTILS = """def get_time_of_day():
    from datetime import datetime
    hour = datetime.now().hour
    if hour < 12:
        return "morning"
    elif hour < 18:
        return "afternoon"
    else:
        return "evening"
"""
NOW = """from utils import get_time_of_day

def greet(name):
    print(f"Hello, {name}!")

greet("Alice")"""
# What run_model.py of sweepai/sweep-next-edit-1.5B makes of its own example.
RUN_MODEL = f"""<|file_sep|>utils.py
{UTILS}
<|file_sep|>greet.py.diff
original:
def greet():
    print("Hello!")
updated:
def greet(name):
    print(f"Hello, {{name}}!")
<|file_sep|>original/greet.py
def greet(name):
    print(f"Hello, {{name}}!")

greet("Alice")
<|file_sep|>current/greet.py
{NOW}
<|file_sep|>updated/greet.py"""
GREET = PromptParts(
    related=(Excerpt("utils.py", 0, UTILS),),
    edits=(
        Hunk("greet.py", 0, 'def greet():\n    print("Hello!")\n', 'def greet(name):\n    print(f"Hello, {name}!")\n'),
        Hunk("greet.py", 0, "", "from utils import get_time_of_day\n\n"),
    ),
    path="greet.py",
    region=EditRegion(NOW, 36),
)
SHAPE = PromptParts(
    related=(Excerpt("b.py", 0, "X = 1\n"), Excerpt("b.py", 7, "Y = 2\n"), Excerpt("c.py", 0, "Z = 3\n")),
    edits=(Hunk("c.py", 4, "z\n", "", predicted=True), Hunk("a.py", 2, "def area(w):\n", "def area(width):\n")),
    path="a.py",
    prefix="import b\n\n",
    suffix="\nprint(area(1))\n",
    region=EditRegion("def area(width):\n    return w * 2\n", 29),
)
# The template of inference.py of sweepai/sweep-next-edit-v2-7B.
INFERENCE = """<|file_sep|>b.py
X = 1

<|file_sep|>b.py
Y = 2

<|file_sep|>c.py
Z = 3

<|file_sep|>a.py
import b

def area(w):
    return w * 2

print(area(1))

<|file_sep|>c.py:5:5
original:
z
updated:

<|file_sep|>a.py:3:3
original:
def area(w):
updated:
def area(width):
<|file_sep|>original/a.py:3:4
def area(w):
    return w * 2
<|file_sep|>current/a.py:3:4
def area(width):
    return w<|cursor|> * 2
<|file_sep|>updated/a.py:3:4
def area(width):
"""
# As the editor puts a prompt together (crates/zeta_prompt).
ZETA = """<[fim-suffix]>

print(area(1))
<[fim-prefix]><filename>b.py
X = 1
...
Y = 2
<filename>c.py
Z = 3

<filename>edit_history
// User accepted prediction:
--- a/c.py
+++ b/c.py
@@ -5,1 +4,0 @@
-z
--- a/a.py
+++ b/a.py
@@ -1,6 +1,6 @@
 import b
{blank}
-def area(w):
+def area(width):
     return w * 2
{blank}
 print(area(1))

<filename>a.py
import b

""".format(blank=" ")
ZETA21 = ZETA + "<|marker_1|>def area(width):\n    return w<|user_cursor|> * 2<|marker_2|>\n<[fim-middle]>"
ZETA2 = ZETA + ("<<<<<<< CURRENT\ndef area(width):\n    return w<|user_cursor|> * 2\n=======\n<[fim-middle]>")


@pytest.mark.parametrize(
    ("name", "parts", "prompt"),
    [
        ("sweep", GREET, RUN_MODEL),
        ("sweep-v2", SHAPE, INFERENCE),
        ("zeta2.1", SHAPE, ZETA21),
        ("zeta2", SHAPE, ZETA2),
    ],
)
def test_a_prompt_is_the_makers(name: str, parts: PromptParts, prompt: str) -> None:
    assert EDIT_FORMATS[name].write(parts)[0] == prompt


REGION = "def area(width):\n    return w * 2\n"
RIGHT = "def area(width):\n    return width * 2\n"


@pytest.mark.parametrize(
    ("name", "answer", "becomes"),
    [
        ("sweep", f"\n{RIGHT}", RIGHT),
        ("sweep", RIGHT.rstrip(), RIGHT),
        ("sweep", f"\n{RIGHT}\\ No newline at end of file\n", RIGHT),
        ("sweep", "\n", REGION),
        ("sweep", f"\n{REGION}", REGION),
        ("sweep-v2", "    return width * 2", RIGHT),
        ("sweep-v2", "", REGION),
        ("sweep-v2", "    return w<|cursor|>idth * 2", RIGHT),
        ("zeta2", f"{RIGHT}>>>>>>> UPDATED\n", RIGHT),
        ("zeta2", f"{REGION}>>>>>>> UPDATED\n", REGION),
        ("zeta2", "NO_EDITS", REGION),
        ("zeta2", "def area(width):\n    ret", None),
        ("zeta2.1", f"<|marker_1|>{RIGHT.rstrip()}<|marker_2|><[end▁of▁sentence]>", RIGHT),
        ("zeta2.1", "<|marker_1|>def area(width):\n    return wi<|user_cursor|>dth * 2<|marker_2|>", RIGHT),
        ("zeta2.1", "<|marker_2|><|marker_2|>", REGION),
        ("zeta2.1", "<|marker_1|>def area(width):\n    ret", None),
        ("zeta2.1", "<|marker_1|>x<|marker_2|>y", None),
        ("zeta2.1", "<|marker_2|>x<|marker_1|>", None),
        ("zeta2.1", "<|marker_1|>x<|marker_3|>", None),
        ("zeta2.1", "", None),
    ],
)
def test_an_answer_is_read_unless_it_is_cut_off_or_has_no_place(name: str, answer: str, becomes: str | None) -> None:
    assert EDIT_FORMATS[name].write(SHAPE)[1].read(answer) == becomes


LINES = st.lists(st.sampled_from(["", "x = 1", "    y", "}", "break;", "<|marker_1|>", "<|file_sep|>"]), max_size=40)


@given(name=st.sampled_from(sorted(EDIT_FORMATS)), old=LINES, new=LINES, data=st.data())
def test_what_is_answered_is_read_again(name: str, old: list[str], new: list[str], data: Any) -> None:
    text = "".join(f"{line}\n" for line in old)
    cursor = data.draw(st.integers(0, len(text)))
    _, reply = EDIT_FORMATS[name].write(PromptParts(path="a", region=EditRegion(text, cursor)))
    # What v2 is given stays, blank answers are none, and how many blank lines end a region is not told.
    above = text[: text[:cursor].rfind("\n") + 1] if name == "sweep-v2" else ""
    wanted = above + "".join(f"{line}\n" for line in ("x", *new, "z")) + text[len(text.rstrip("\n")) :][1:]

    assert reply.read(reply.answered(text)) == text
    assert reply.read(reply.guess) == text
    if text.strip():
        assert reply.read(reply.answered(wanted)) == wanted


def test_a_region_is_cut_into_blocks_where_the_editor_cuts_it() -> None:
    def blocks(lines: list[str]) -> list[int]:
        prompt, reply = write_zeta(PromptParts(region=EditRegion("".join(f"{line}\n" for line in lines))), blocks=True)
        assert parse_zeta(prompt).markers == reply.markers
        return [reply.edit.region[:at].count("\n") for at in reply.markers[1:-1]]

    assert blocks(["x"] * 16) == []
    assert blocks(["x"] * 40) == [16, 32]
    assert blocks(["x"] * 16 + ["}", "end;", "x"] + ["x"] * 4) == [18]
    assert blocks(["x"] * 7 + [""] + ["x"] * 7) == [8]
    assert blocks(["x"] * 7 + [""] + ["x"] * 5) == []
    assert blocks(["x"] * 3 + [""] + ["x"] * 11) == []


def test_text_of_the_users_is_no_token_and_comes_back_as_it_was() -> None:
    text = "a = '<|file_sep|>'\n"
    prompt, reply = write_sweep(PromptParts(path="a.py", region=EditRegion(text, 0)), second=False)

    assert prompt.count("<|file_sep|>") == 3
    assert reply.read(f"b\n{text}".replace("<|", "< |")) == f"b\n{text}"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("zed-industries--zeta-2.1", "zeta2.1"),
        ("zeta2.1:latest", "zeta2.1"),
        ("zed-industries_zeta-2-Q4_K_M", "zeta2"),
        ("models--sweepai--sweep-next-edit-1.5B", "sweep"),
        ("sweep-next-edit-1.5b.q8_0.v2", "sweep-v2"),
        ("sweep-next-edit-1.5b.q8_0", "sweep"),
        ("sweep-next-edit-v2-7B-Q4_K_M", "sweep-v2"),
        ("zed-industries/zeta", None),
        ("qwen2.5-coder-sweep-3", None),
    ],
)
def test_a_format_is_known_by_the_name_of_its_model(name: str, form: str | None) -> None:
    assert format_called(name) == form


def test_sweep_v2_undoes_all_recent_edits_of_a_region_and_numbers_its_lines_as_the_file_does() -> None:
    edits = (Hunk("a.py", 41, "b = 2\n", ""), Hunk("a.py", 40, "a = 0\n", "a = 1\n"), Hunk("a.py", 42, "", "d = 4\n"))
    parts = PromptParts(
        edits=edits, path="a.py", prefix="x = 0\n", region=EditRegion("a = 1\nc = 3\nd = 4\n"), first_line=39
    )

    prompt, reply = write_sweep(parts, second=True)

    assert "<|file_sep|>original/a.py:41:43\na = 0\nb = 2\nc = 3\n<|file_sep|>" in prompt
    # A place without the cursor has it behind its first line, which the answer does not repeat.
    assert prompt.endswith("current/a.py:41:43\na = 1\n<|cursor|>c = 3\nd = 4\n<|file_sep|>updated/a.py:41:43\na = 1\n")
    assert reply.read("c = 3\nd = 5") == "a = 1\nc = 3\nd = 5\n"


@pytest.mark.parametrize(
    ("changed", "given"), [(0, "a = 1\n\n"), (1, "a = 1\n\n"), (3, "a = 1\n\nb = 2\n"), (None, "a = 1\n\nb = 2\n")]
)
def test_sweep_v2_may_rewrite_lines_above_the_cursor_after_a_change_there(changed: int | None, given: str) -> None:
    region = "a = 1\n\nb = 2\nc = 3\n"
    edits = () if changed is None else (Hunk("a.py", changed, "", region.splitlines(keepends=True)[changed]),)
    parts = PromptParts(edits=edits, path="a.py", region=EditRegion(region, region.index("c") + 2))
    prompt, reply = write_sweep(parts, second=True)
    assert prompt.endswith(f"updated/a.py:1:4\n{given}")
    assert reply.read(region.removeprefix(given)) == region
