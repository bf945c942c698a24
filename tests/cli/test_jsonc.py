from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.cli import jsonc
from calomel.cli.jsonc import with_values

ZED = """// Zed settings
{
  // How it looks
  "theme": "One Dark", /* dark */
  "languages": { "Python": { "tab_size": 4 } },
  "edit_predictions": {
    "mode": "subtle", // as I like it
    // "provider": "zed",
    "provider": "none",
  },
  // the end
}
"""


def test_comments_order_and_commas_stay() -> None:
    wanted = {"edit_predictions": {"provider": "x", "more": {"url": "http://a"}}, "vim_mode": True}
    text = with_values(ZED, wanted)

    assert text == ZED.replace("{\n  // How", '{\n  "vim_mode": true,\n  // How').replace(
        '    "mode"', '    "more": {\n      "url": "http://a"\n    },\n    "mode"'
    ).replace('"none"', '"x"')
    assert with_values(text, wanted) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("// mine\n", '// mine\n{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ("{\n}\n", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{ // nothing\n}\n", '{\n  "a": {\n    "b": 1\n  } // nothing\n}\n'),
        ('{"x": 1}', '{"a": {"b": 1}, "x": 1}'),
        ('{ /* one */ "x": 1 }', '{ /* one */ "a": {"b": 1}, "x": 1 }'),
        ('{"x": 1,}', '{"a": {"b": 1}, "x": 1,}'),
        ('{ // one\n\t"x": 1\n}\n', '{\n\t"a": {\n\t\t"b": 1\n\t}, // one\n\t"x": 1\n}\n'),
        ('{\r\n    "x": 1\r\n}\r\n', '{\r\n    "a": {\r\n        "b": 1\r\n    },\r\n    "x": 1\r\n}\r\n'),
        ('{"a": null}', '{"a": {\n  "b": 1\n}}'),
        ('{"a": {"b": 2}, "a": {"b": 3}}', '{"a": {"b": 2}, "a": {"b": 1}}'),
        ('\ufeff{"a": {"b": 2}}', '\ufeff{"a": {"b": 1}}'),
        ('{"a": {"b": /* was */ 2}}', '{"a": {"b": /* was */ 1}}'),
    ],
)
def test_what_is_not_there_is_added_in_the_files_own_style(before: str, after: str) -> None:
    assert with_values(before, {"a": {"b": 1}}) == after


@pytest.mark.parametrize(
    "text",
    ["[]", "1", '"x"', "{", "{]", '{"a" 1}', '{"a": }', '{"a": 1 "b": 2}', "{,}", "{'a': 1}", '{"a": 01}', '{"a": x}',
     "{} {}", '{"a": "\n"}', '{"a": 1}}', "/* ", '{"a": [1 2]}', '{"a":' * 300, "{\x00}"],
)  # fmt: skip
def test_what_is_no_settings_file_is_left_alone(text: str) -> None:
    with pytest.raises(ValueError, match=r"line \d"):
        with_values(text, {"a": {"b": 1}})


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["// no", "/* no */", ",}"])
keys = st.sampled_from(["a", "b", "c", "é", "//", "}"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)
objects = st.dictionaries(keys, values, max_size=4)
nested = st.recursive(scalars, lambda inner: st.dictionaries(keys, inner, min_size=1, max_size=2), max_leaves=3)
changes = st.dictionaries(keys, nested, max_size=2)
_COMMENT = re.compile(r"<<\d+>>")


def written(value: Any, chance: random.Random) -> str:
    """A value as somebody may write it: with blanks, comments, commas."""
    count = 0

    def gap() -> str:
        nonlocal count
        count += 1
        mark = f"<<{count}>>"
        return chance.choice(["", "", " ", "\n  ", "\t", f"/*{mark}*/", f" // {mark}, }}\n", f"\n/* {mark}\n*/"])

    def told(value: Any) -> str:
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=chance.random() < 0.5)
        named = isinstance(value, dict)
        keys = [f"{json.dumps(key)}{gap()}:{gap()}" for key in value] if named else [""] * len(value)
        values = value.values() if isinstance(value, dict) else value
        pieces = [f"{gap()}{key}{told(each)}{gap()}" for key, each in zip(keys, values, strict=True)]
        inner = ",".join(pieces) + ("," if pieces and chance.random() < 0.5 else "") + gap()
        return f"{{{inner}}}" if named else f"[{inner}]"

    text = gap() + told(value) + gap()
    return text.replace("\n", "\r\n") if chance.random() < 0.3 else text


def merged(old: Any, new: dict[str, Any]) -> dict[str, Any]:
    into = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        into[key] = merged(into.get(key), value) if isinstance(value, dict) and value else value
    return into


@given(objects, st.integers(0, 2**32), changes)
def test_the_values_are_set_and_everything_else_stays(value: dict[str, Any], seed: int, wanted: dict[str, Any]) -> None:
    text = written(value, random.Random(seed))
    made = with_values(text, wanted)

    assert jsonc.loads(made) == merged(value, wanted)
    assert with_values(made, wanted) == made
    kept = iter(_COMMENT.findall(text))
    # Comments are lost with a value that is replaced, and with no other; none moves.
    assert all(mark in kept for mark in _COMMENT.findall(made))


@given(objects, st.integers(0, 2**32), keys.map(lambda key: f"new {key}"), scalars)
def test_a_new_setting_takes_nothing_away(value: dict[str, Any], seed: int, key: str, wanted: Any) -> None:
    text = written(value, random.Random(seed))
    made = with_values(text, {key: wanted})
    rest = iter(made)

    assert all(character in rest for character in text if not character.isspace())


@given(st.text(alphabet='{}[]:,"/*ab1 \n', max_size=40))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        made = with_values(text, {"a": 1})
    except ValueError:
        return
    assert jsonc.loads(made)["a"] == 1
