"""A function is made asynchronous, and so is whoever calls it."""

from __future__ import annotations

import pytest
from tests.training.edits.told import told

from calomel.training.edits.made_async import made_async

CASES = {
    "python": (
        (
            "import sys\n\n\ndef fetch(a):\n    return a\n\n\ndef run(b):\n    c = fetch(b).text\n"
            "    return c\n\n\nrun(1)\n"
        ),
        (
            "import asyncio\nimport sys\n\n\nasync def fetch(a):\n    return a\n\n\nasync def run(b):\n"
            "    c = (await fetch(b)).text\n    return c\n\n\nasyncio.run(run(1))\n"
        ),
    ),
    "typescript": (
        (
            "class A {\n  private fetch(a: A): B[] {\n    return a;\n  }\n\n  measure() {\n"
            "    return this.fetch(1).length;\n  }\n}\n\nit('x', () => {\n  a.measure();\n});\n"
        ),
        (
            "class A {\n  private async fetch(a: A): Promise<B[]> {\n    return a;\n  }\n\n  async measure() {\n"
            "    return (await this.fetch(1)).length;\n  }\n}\n\nit('x', async () => {\n  await a.measure();\n});\n"
        ),
    ),
    "javascript": (
        "const fetchAll = (a) => a;\n\nfunction scan(b) {\n  return fetchAll(b);\n}\n",
        "const fetchAll = async (a) => a;\n\nasync function scan(b) {\n  return await fetchAll(b);\n}\n",
    ),
    "go": (
        'package a\n\nimport (\n\t"bytes"\n\t"fmt"\n)\n\nfunc fetch(a int) {\n}\n\nfunc main() {\n\tfetch(1)\n}\n',
        (
            'package a\n\nimport (\n\t"bytes"\n\t"context"\n\t"fmt"\n)\n\n'
            "func fetch(ctx context.Context, a int) {\n}\n\n"
            "func main() {\n\tfetch(context.TODO(), 1)\n}\n"
        ),
    ),
    "rust": (
        (
            "fn fetch(a: u8) -> Result<u8> {\n    Ok(a)\n}\n\n#[test]\nfn it_works() {\n"
            "    assert_eq!(fetch(1).unwrap(), 1);\n"
            "    let a = fetch(2)?;\n}\n"
        ),
        (
            "async fn fetch(a: u8) -> Result<u8> {\n    Ok(a)\n}\n\n#[tokio::test]\nasync fn it_works() {\n"
            "    assert_eq!(fetch(1).await.unwrap(), 1);\n    let a = fetch(2).await?;\n}\n"
        ),
    ),
}


@pytest.mark.parametrize("language", CASES)
def test_calls_wait_and_callers_become_asynchronous_in_turn(language: str) -> None:
    before, after = CASES[language]
    stories = [story for story in told(made_async, language, before) if story.states()[-1] == after]
    assert len(stories) == 1
    assert before[stories[0].changes[0].start :].startswith(("def fetch", "fetch", "(a) =>", "a int", "fn fetch"))


def test_a_context_at_hand_is_handed_on() -> None:
    text = 'package a\n\nimport "context"\n\nfunc Run(c context.Context) {\n\tfetch(1)\n}\n\nfunc fetch(a int) {\n}\n'
    (story,) = told(made_async, "go", text)
    assert story.states()[-1] == text.replace("fetch(1)", "fetch(c, 1)").replace(
        "(a int", "(ctx context.Context, a int"
    )


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
