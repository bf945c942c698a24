"""Other people's plugins in a real Neovim, with the settings of docs/plugins.md, against the running server.

`make clients` fetches them. What the page says is what is run: its blocks, with another port in the address.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.editors.neovim.neovim import Neovim
from tests.editors.programs import find_neovim, wanted
from tests.house.pages import ROOT
from tests.server.clients.conftest import FOLDER

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PLUGINS = FOLDER / "neovim"
TEXT = "def area(width, height):\n    return width * height\n\n\ndef volume(width, height, depth):\n    return width *"
NAMES = "def distance(items):\n    total = 0\n    for point in items:\n        total += abs(point)\n    return total\n"
LOOK_NANOSECONDS = 1_000_000_000
# Virtual text of any plugin, as it stands on the screen.
SHOWN = """
local found = {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, { details = true })) do
    local details = mark[4]
    for _, row in ipairs(vim.list_extend({ details.virt_text or {} }, details.virt_lines or {})) do
        for _, chunk in ipairs(row) do table.insert(found, chunk[1]) end
    end
end
for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= "" then
        vim.list_extend(found, vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false))
    end
end
return table.concat(found, "\\n")
"""


def block(title: str, server: SimpleNamespace) -> tuple[str, str]:
    """The language and the text of the first block below a heading of the page, for this server."""
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    found = re.search(rf"^### {re.escape(title)}$.*?^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    text = found[2].replace("http://127.0.0.1:8017", server.url)
    assert text != found[2]
    return found[1], text


@pytest.fixture
def neovim(server: SimpleNamespace, tmp_path: Path) -> Iterator[Neovim]:
    """One that has nothing of ours, and the variables that the page tells of."""
    private = {name: str(tmp_path / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    kept = {name: value for name, value in os.environ.items() if "PROXY" not in name.upper()}
    more = {"CALOMEL_TOKEN": server.token, "MERCURY_AI_TOKEN": server.token}
    with Neovim(wanted(find_neovim()), tmp_path, surroundings={**kept, **private, **more}) as started:
        started.seconds = 60.0
        # As every Neovim has it that was not told to read nothing.
        started.command("filetype plugin indent on")
        yield started
    # cursortab's own server would stay for half a minute.
    for path in tmp_path.rglob("cursortab.pid"):
        with suppress(OSError, ValueError):
            os.kill(int(path.read_text()), signal.SIGTERM)


def load(neovim: Neovim, config: tuple[str, str], *plugins: str) -> None:
    """Put the plugins on the path, run the settings, and then what the plugins run at a start."""
    missing = [name for name in plugins if not (PLUGINS / name).is_dir()]
    if missing:
        pytest.skip(f"no {', '.join(missing)} in {PLUGINS}: run `make clients`")
    for name in plugins:
        neovim.lua("vim.opt.runtimepath:prepend(...)", str(PLUGINS / name))
    language, text = config
    neovim.lua(text if language == "lua" else "vim.api.nvim_exec2(..., {})", text)
    for name in plugins:
        for script in (*(PLUGINS / name).glob("plugin/*.lua"), *(PLUGINS / name).glob("plugin/*.vim")):
            neovim.command(f"source {script}")


def shown(neovim: Neovim) -> str:
    return str(neovim.lua(SHOWN))


def until_shown(neovim: Neovim, text: str) -> None:
    def there() -> bool:
        return text in shown(neovim)

    neovim.report = lambda: f"shown {shown(neovim)!r}, {neovim.lua('return vim.v.errmsg')!r}"  # type: ignore[method-assign]
    neovim.until(there, f"{text!r} is shown")


@pytest.mark.parametrize(
    ("title", "plugins", "accept"),
    [("minuet-ai.nvim", ("plenary.nvim", "minuet-ai.nvim"), "<A-A>"), ("llama.vim", ("llama.vim",), "<Tab>")],
)
def test_text_at_the_cursor_is_shown_and_taken(
    neovim: Neovim, server: SimpleNamespace, title: str, plugins: tuple[str, ...], accept: str
) -> None:
    load(neovim, block(title, server), *plugins)
    neovim.open(TEXT, served=False)
    neovim.type("5jA ")
    until_shown(neovim, "height")
    neovim.type(accept)
    neovim.until(lambda: neovim.text().split("\n")[5].startswith("    return width * height"), "it was taken")


def test_cursortab_shows_the_next_edit_and_takes_it(neovim: Neovim, server: SimpleNamespace) -> None:
    if not (PLUGINS / "cursortab.nvim" / "server" / "cursortab").exists():
        pytest.skip("cursortab's server is not built: run `make clients` with a Go that is new enough")
    load(neovim, block("cursortab.nvim", server), "cursortab.nvim")
    neovim.open(NAMES, "distance.py", served=False)
    # It compares edits with what it saw first: a person lets it look, and then types.
    look = neovim.lua("return vim.uv.hrtime()")
    neovim.type("j")
    neovim.until(lambda: neovim.lua("return vim.uv.hrtime()") - look > LOOK_NANOSECONDS, "it has looked")
    neovim.type("k/items<CR>cwpoints<Esc>")
    until_shown(neovim, "points")
    neovim.type("<Tab>")
    neovim.until(lambda: "for point in points:" in neovim.text(), "it was taken")
