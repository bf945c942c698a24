"""A function is made asynchronous, and so is whoever calls it."""

from __future__ import annotations

import pytest
from tests.training.edits.told import told

from calomel.training.edits.makers import MAKERS, made_async


@pytest.mark.parametrize("kind", MAKERS)
def test_a_kind_is_the_name_of_its_maker(kind: str) -> None:
    assert MAKERS[kind].__name__ == kind


CASES = {
    "python": (
        ("import sys\n\n\ndef fetch(a):\n    return a\n\n\ndef run(b):\n    c = fetch(b).text\n    return c\n"),
        (
            "import sys\n\n\nasync def fetch(a):\n    return a\n\n\nasync def run(b):\n"
            "    c = (await fetch(b)).text\n    return c\n"
        ),
    ),
    "typescript": (
        (
            "class A {\n  private fetch(a: A): B[] {\n    return a;\n  }\n\n  measure() {\n"
            "    return this.fetch(1).length;\n  }\n\n  show() {\n    this.measure();\n  }\n}\n"
        ),
        (
            "class A {\n  private async fetch(a: A): Promise<B[]> {\n    return a;\n  }\n\n  async measure() {\n"
            "    return (await this.fetch(1)).length;\n  }\n\n  async show() {\n    await this.measure();\n  }\n}\n"
        ),
    ),
    "javascript": (
        "const fetchAll = (a) => a;\n\nfunction scan(b) {\n  return fetchAll(b);\n}\n",
        "const fetchAll = async (a) => a;\n\nasync function scan(b) {\n  return await fetchAll(b);\n}\n",
    ),
    "rust": (
        (
            "fn fetch(a: u8) -> Result<u8> {\n    Ok(a)\n}\n\nfn it_works() {\n"
            "    assert_eq!(fetch(1).unwrap(), 1);\n"
            "    let a = fetch(2)?;\n}\n"
        ),
        (
            "async fn fetch(a: u8) -> Result<u8> {\n    Ok(a)\n}\n\nasync fn it_works() {\n"
            "    assert_eq!(fetch(1).await.unwrap(), 1);\n    let a = fetch(2).await?;\n}\n"
        ),
    ),
}


@pytest.mark.parametrize("language", CASES)
def test_calls_wait_and_callers_become_asynchronous_in_turn(language: str) -> None:
    before, after = CASES[language]
    stories = [story for story in told(made_async, language, before) if story.states()[-1] == after]
    assert len(stories) == 1
    assert before[stories[0].changes[0].start :].startswith(("def fetch", "fetch", "(a) =>", "fn fetch"))


@pytest.mark.parametrize(
    "text",
    [
        "async def fetch(a):\n    return a\n\n\nasync def run():\n    await fetch(1)\n",
        "def fetch(a):\n    yield a\n\n\ndef run():\n    fetch(1)\n",
        "def fetch(a):\n    return a\n\n\nsorted([], key=lambda a: fetch(a))\n",
    ],
)
def test_what_cannot_wait_is_left_alone(text: str) -> None:
    assert told(made_async, "python", text) == []
