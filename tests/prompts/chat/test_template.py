"""Templates as models bring them, and as nobody should."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calomel.prompts.chat.template import ChatTemplate, ChatTemplateError

SIMPLE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]"
HELLO = [{"role": "user", "content": "hello"}]


def template(source: str, **tokens: str) -> ChatTemplate:
    return ChatTemplate({"default": source}, tokens, now=lambda: datetime(2026, 3, 1, tzinfo=UTC))


def test_a_conversation_is_written_as_the_template_says() -> None:
    assert template(SIMPLE).render(HELLO) == "[user]hello\n[assistant]"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ bos_token }}x", "<s>x"),
        ("{{ messages[0]['content'] | trim | upper }}", "HELLO"),
        ("{{ tools | tojson }}", '[{"a": "<é>"}]'),
        ("{{ tools | tojson(indent=1) }}", '[\n {\n  "a": "<é>"\n }\n]'),
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}!", "hello!"),
        ("{% for i in range(3) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        ("{{ strftime_now('%Y-%m-%d') }}", "2026-03-01"),
        ("{% set ns = namespace(n=1) %}{% set ns.n = 2 %}{{ ns.n }}", "2"),
        ("{% if enable_thinking is defined and not enable_thinking %}quick{% endif %}", "quick"),
        ("{{ 'ab' * 3 }}{{ '-' * 4 }}", "ababab----"),
        ("{% if add_generation_prompt %}go{% endif %}{{ documents }}", "goNone"),
    ],
)
def test_what_templates_use_is_there(source: str, expected: str) -> None:
    made = template(source, bos_token="<s>")

    assert made.render(HELLO, [{"a": "<é>"}], enable_thinking=False) == expected


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ self._TemplateReference__context }}{{ messages.append(1) }}",
        "{{ raise_exception('secret ' ~ messages[0].content) }}",
        "{{ messages[7].content.x }}",
        "{{ 1 / 0 }}",
        "{{ 'a' * 10 ** 9 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ [0] * 1000000 }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{% for i in range(60000) %}{% endfor %}{% for i in range(60000) %}{% endfor %}",
        "{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
        "{% for i in range(90000) %}{{ 'x' * 1000 }}{% endfor %}",
    ],
)
def test_what_no_template_should_do_is_refused_soon_and_without_a_quotation(source: str) -> None:
    made = template(source)
    began = time.monotonic()

    with pytest.raises(ChatTemplateError) as refusal:
        made.render([{"role": "user", "content": "secret"}])

    assert "secret" not in str(refusal.value)
    assert time.monotonic() - began < 3


def test_a_template_that_does_not_parse_is_named_when_it_is_loaded() -> None:
    with pytest.raises(ChatTemplateError, match="does not parse"):
        template("{% for %}")
    with pytest.raises(ChatTemplateError, match="longer"):
        template("x" * 1_000_001)


def test_a_folder_without_a_template_does_not_chat(tmp_path: Path) -> None:
    assert ChatTemplate.of(tmp_path) is None
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>"}))
    assert ChatTemplate.of(tmp_path) is None


def test_the_template_is_found_in_either_file(tmp_path: Path) -> None:
    config = {"chat_template": SIMPLE, "bos_token": {"content": "<s>"}, "eos_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    old = ChatTemplate.of(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{{ bos_token }}new")
    new = ChatTemplate.of(tmp_path)

    assert old is not None
    assert new is not None
    assert old.render(HELLO) == "[user]hello\n[assistant]"
    assert new.render(HELLO) == "<s>new"


def test_a_template_for_tools_is_taken_when_there_are_tools(tmp_path: Path) -> None:
    sources = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}, {"name": 3}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": sources}))
    made = ChatTemplate.of(tmp_path)

    assert made is not None
    assert made.render(HELLO) == "plain"
    assert made.render(HELLO, [{"type": "function"}]) == "tools"


def test_damaged_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(ChatTemplateError, match=r"tokenizer_config\.json"):
        ChatTemplate.of(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(ChatTemplateError, match=r"chat_template\.jinja"):
        ChatTemplate.of(tmp_path)
