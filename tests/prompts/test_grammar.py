"""Forms of answers, token by token: what is allowed, and what is refused before it costs anything."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calomel.prompts.grammar import (
    AnswerForm,
    GrammarCompiler,
    GrammarConstraint,
    GrammarError,
    GrammarWalk,
    json_form,
    pattern_form,
)
from calomel.prompts.tokenizer import Tokenizer

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def compiler(tokenizer: Tokenizer) -> GrammarCompiler:
    return GrammarCompiler(tokenizer)


def allowed(walk: GrammarWalk, tokenizer: Tokenizer) -> list[int]:
    mask = walk.allowed()
    return [token for token in range(tokenizer.size) if token // 8 < len(mask) and mask[token // 8] >> token % 8 & 1]


def taken(constraint: GrammarConstraint, tokenizer: Tokenizer, text: str) -> tuple[str, bool]:
    walk = constraint.begin()
    ids = tokenizer.encode(text)
    count = walk.advance(ids)
    return tokenizer.decode(ids[:count]), walk.may_end()


OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("form", "kept", "rest"),
    [
        (json_form(PERSON), '{"name": "Ada", "age": 36}', ""),
        (json_form(OBJECT), '{"a": [1, null, {"b": "ü\\n"}]}', ""),
        (pattern_form("[0-9]{3}-[a-z]+"), "123-abc", ""),
        (json_form(PERSON), '{"name": "a", "age": 1}', " and more"),
        (json_form(PERSON), "", "Here you are: {"),
        (json_form(PERSON), None, '{"name": 1'),
        (json_form(OBJECT), None, '{     "a": 1}'),
        (json_form({"type": "integer", "maximum": 9}), None, "10"),
    ],
)
def test_what_fits_is_taken_and_the_rest_is_refused(
    compiler: GrammarCompiler, tokenizer: Tokenizer, form: AnswerForm, kept: str | None, rest: str
) -> None:
    found, whole = taken(compiler.compile(form), tokenizer, (kept or "") + rest)

    if kept is None:
        assert rest.startswith(found)
        assert found != rest
    else:
        assert (found, whole) == (kept, bool(kept))


def test_control_tokens_are_never_allowed(compiler: GrammarCompiler, tokenizer: Tokenizer) -> None:
    walk = compiler.compile(json_form({"type": "string"})).begin()
    walk.advance(tokenizer.encode('"text'))

    assert set(tokenizer.control.values()).isdisjoint(allowed(walk, tokenizer))
    assert walk.advance([tokenizer.file]) == 0
    assert walk.advance([tokenizer.size + 5]) == 0
    assert walk.advance(tokenizer.encode(' goes on"')) > 0
    assert walk.may_end()


def schemas() -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.sampled_from(
            [
                {"type": "integer"},
                {"type": "integer", "minimum": -3, "maximum": 12},
                {"type": "boolean"},
                {"type": "null"},
                {"type": "number"},
                {"type": "string", "maxLength": 4},
                {"type": "string", "pattern": "^[a-c]{1,3}$"},
                {"type": "string", "format": "date"},
            ]
        ),
        st.lists(st.sampled_from(["a", "bé", 1, None, True]), min_size=1, unique_by=repr).map(lambda e: {"enum": e}),
        st.text(max_size=4).map(lambda value: {"const": value}),
    )

    def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        names = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=4)
        return st.one_of(
            st.dictionaries(names, inner, max_size=3).flatmap(
                lambda properties: st.sets(st.sampled_from(sorted(properties)) if properties else st.nothing()).map(
                    lambda needed: {
                        "type": "object",
                        "properties": properties,
                        "required": sorted(needed),
                        "additionalProperties": False,
                    }
                )
            ),
            inner.map(lambda items: {"type": "array", "items": items, "minItems": 1, "maxItems": 3}),
            st.lists(inner, min_size=1, max_size=2).map(lambda each: {"anyOf": each}),
        )

    return st.recursive(leaves, deeper, max_leaves=6)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(schema=schemas(), seed=st.integers(0, 10_000))
def test_any_way_through_a_schema_that_ends_is_an_instance_of_it(
    compiler: GrammarCompiler, tokenizer: Tokenizer, schema: dict[str, Any], seed: int
) -> None:
    choose = random.Random(seed)
    walk = compiler.compile(json_form(schema)).begin()
    ids: list[int] = []
    while len(ids) < 300:
        next_ids = [token for token in allowed(walk, tokenizer) if token != tokenizer.end]
        if walk.may_end() and (not next_ids or choose.random() < 0.3):
            break
        assert next_ids
        ids.append(choose.choice(next_ids))
        assert walk.advance(ids[-1:]) == 1
    if walk.may_end():
        value = json.loads(tokenizer.decode(ids))
        jsonschema.validate(value, schema)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.text(max_size=30), cut=st.integers(0, 60))
def test_as_much_is_taken_together_as_one_by_one(
    compiler: GrammarCompiler, tokenizer: Tokenizer, text: str, cut: int
) -> None:
    ids = tokenizer.encode((json.dumps({"name": text, "age": 3}) + "}")[:cut])
    constraint = compiler.compile(json_form(PERSON))
    together, apart = constraint.begin(), constraint.begin()

    def one_by_one(tokens: Sequence[int]) -> int:
        return next((at for at, token in enumerate(tokens) if not apart.advance([token])), len(tokens))

    assert together.advance(ids) == one_by_one(ids)
    assert together.may_end() == apart.may_end()


DEEP: Any = {"type": "integer"}
for _ in range(100):
    DEEP = {"type": "array", "items": DEEP}


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "string", "pattern": "([secret"}, "regular expression"),
        ({"type": "string", "pattern": "(?=secret)b"}, "look-ahead"),
        ({"type": "string", "not": {"const": "secret"}}, "unsupported keywords: not"),
        ("a" * 5000, "4096"),
        ({"enum": [f"secret{number}" for number in range(5000)]}, "parts"),
        ({"const": "secret" * 20_000}, "characters"),
        (DEEP, "levels"),
        ({"$ref": "http://127.0.0.1:9/secret.json"}, "another document"),
        ({"$ref": "#/$defs/secret"}, "schema"),
        ({"$ref": "#"}, "nothing fits"),
        ({"type": "string", "pattern": "(" * 4000 + "secret" + ")" * 4000}, "regular expression"),
        ({"allOf": [{"type": "string", "pattern": "^.*a.{15}$"}, {"pattern": "^.*b.{14}$"}]}, "complex"),
    ],
)
def test_a_bad_or_huge_schema_is_refused_in_bounded_time_without_being_quoted(
    compiler: GrammarCompiler, tokenizer: Tokenizer, schema: Any, says: str
) -> None:
    began = time.monotonic()
    if says == "complex":
        # What only shows itself while tokens come has no way on then.
        walk, choose = compiler.compile(json_form(schema)).begin(), random.Random(1)
        for _ in range(50):
            walk.advance([choose.choice([*allowed(walk, tokenizer), tokenizer.file])])
    else:
        with pytest.raises(GrammarError, match=says) as refusal:
            compiler.compile(pattern_form(schema) if isinstance(schema, str) else json_form(schema))
        assert "secret" not in str(refusal.value)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "pattern",
    [
        "(a{1000}){1000}",
        "((a{100}){100}){100}",
        "(" * 60 + "a" + "{2})" * 60,
        "(?:[^]a](?:b|c{9}){9}){999}",
        r"(?P<x>\p{L}{100}){200}",
        r"(\[[x{2}]{100}){101}",
        "(a{ 100 }){200}",
        "(a{0,1000}){,1000}",
        "(?x) # [\n (a{1000}){1000}",
    ],
)
def test_a_pattern_that_is_huge_once_it_is_written_out_is_refused_before_it_is_compiled(pattern: str) -> None:
    with pytest.raises(GrammarError, match="pattern"):
        pattern_form(pattern)
    with pytest.raises(GrammarError, match="pattern"):
        json_form({"items": {"type": "string", "pattern": pattern}})


@pytest.mark.parametrize(
    "pattern",
    [r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}", r"[\w.+-]{1,64}@[\w-]{1,255}\.[a-z]{2,63}", "[({]{2}{}", "x{9999}"],
)
def test_an_ordinary_pattern_with_repetitions_is_taken(pattern: str) -> None:
    assert pattern_form(pattern).grammar


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(([a-z]{1,100}){1,100}){1,100}",
        "(.*a.{20}b.*c.{20}){3}",
        "|".join(f"w{number}" for number in range(500)),
    ],
)
def test_patterns_that_are_poison_elsewhere_cost_a_bounded_time_for_each_token(
    compiler: GrammarCompiler, tokenizer: Tokenizer, pattern: str
) -> None:
    choose, slowest = random.Random(2), 0.0
    try:
        walk = compiler.compile(pattern_form(pattern)).begin()
    except GrammarError:
        return
    for _ in range(40):
        began = time.monotonic()
        ids = [token for token in allowed(walk, tokenizer) if token != tokenizer.end]
        if not ids:
            break
        walk.advance([choose.choice(ids)])
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 1


def test_a_schema_can_not_loosen_how_it_is_read(compiler: GrammarCompiler, tokenizer: Tokenizer) -> None:
    loose = {"type": "integer", "x-guidance": {"whitespace_pattern": "x*", "item_separator": "x", "lenient": True}}

    with pytest.raises(GrammarError):
        compiler.compile(json_form({**loose, "not": {"const": 3}}))
    kept, _ = taken(compiler.compile(json_form({"type": "array", "items": loose})), tokenizer, "[1x2]")
    assert kept == "[1"
