"""Neovim: a file of our own in its `plugin` folder, which no plugin manager touches."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Final

from calomel.cli.editors.files import read
from calomel.cli.editors.here import Here
from calomel.cli.editors.plan import Change, Plan, Snippet
from calomel.cli.errors import InputError

_LOADED: Final = """-- Calomel. Written by `calomel editor setup neovim`; yours to change.
local folder = {folder}
vim.opt.runtimepath:append(folder)
vim.cmd.source(folder .. "/plugin/calomel.lua")
require("calomel").setup({{ cmd = {{ {program}, "lsp" }} }})
"""
_LAZY: Final = """{{ dir = {folder}, name = "calomel", event = "VeryLazy", opts = {{ cmd = {{ {program}, "lsp" }} }} }}
"""
_NOWHERE: Final = "/path/to/calomel/editors/neovim"
_MOST_FILES: Final = 500


def plan(here: Here, file: Path | None = None) -> Plan:
    """The plugin, loaded at the start, unless the configuration speaks of it already. Raises InputError."""
    folder = here.config / "nvim"
    path = file or folder / "plugin" / "calomel-setup.lua"
    names = {"folder": json.dumps(_plugin(here)), "program": json.dumps(here.program)}
    lazy = Snippet("with lazy.nvim, in place of that file, in your list of plugins", _LAZY.format(**names))
    if here.plugins is None:
        return Plan((), (lazy,), ("The plugin is the folder editors/neovim of Calomel's source: clone it first.",))
    mentioned = _mentioned(folder, path)
    if mentioned is not None:
        return Plan((), (lazy,), (f"{mentioned} sets Calomel up already; nothing is written.",))
    before = read(path)
    # A file of this name that is there is the user's by now.
    after = _LOADED.format(**names) if before is None else before
    return Plan((Change(path, before, after),), (lazy,), (":checkhealth calomel says what is missing.",))


def _plugin(here: Here) -> str:
    return _NOWHERE if here.plugins is None else str(here.plugins / "neovim")


def _mentioned(folder: Path, own: Path) -> Path | None:
    """A file of the configuration that loads the plugin."""
    files = sorted(each for kind in ("*.lua", "*.vim") for each in folder.rglob(kind)) if folder.is_dir() else []
    for each in files[:_MOST_FILES]:
        # One that cannot be read is no reason to stop.
        with contextlib.suppress(InputError):
            if each != own and "calomel" in (read(each) or ""):
                return each
    return None
