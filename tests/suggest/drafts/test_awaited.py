from __future__ import annotations

import pytest
from tests.suggest.drafts.moment import Moment


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("def load():\n    pass\n\ndef main():\n    x = self.store.load()\n", "def load", "async def load",
         ["    x = await self.store.load()", "async def main():"]),
        ("function load() {\n}\n\nfunction main() {\n  use(load());\n}\n", "function load", "async function load",
         ["  use(await load());", "async function main() {"]),
        ("fn load() {\n}\n\nfn main() {\n    load().run();\n}\n", "fn load", "async fn load",
         ["    load().await.run();", "async fn main() {"]),
    ],
)  # fmt: skip
def test_calls_wait_and_their_functions_become_asynchronous(text: str, old: str, new: str, expected: list[str]) -> None:
    assert sorted(Moment(text, (old, new)).results("awaited")) == sorted(expected)


def test_what_waits_already_stays() -> None:
    text = "def load():\n    pass\n\nasync def main():\n    await load()\n"
    assert Moment(text, ("def load", "async def load")).results("awaited") == []
