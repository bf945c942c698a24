"""Helix. Its languages.toml names all servers of a language in one list: only the user knows the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from calomel.cli.editors.here import Here
from calomel.cli.editors.plan import Plan, Snippet

_SERVER: Final = """[language-server.calomel]
command = {program}
args = ["lsp"]
config = {{ completion_item = true }}

# For each language: first the servers that `hx --health LANGUAGE` shows, then calomel.
[[language]]
name = "python"
language-servers = ["pylsp", "calomel"]
"""


def plan(here: Here, file: Path | None = None) -> Plan:
    """What belongs into languages.toml."""
    path = file or here.home / ".config" / "helix" / "languages.toml"
    if file is None and not here.mac:
        path = here.config / "helix" / "languages.toml"
    text = _SERVER.format(program=json.dumps(here.program))
    note = (
        "Helix shows no inline completion yet: suggestions are completions, next edits the code action "
        '"Apply predicted edit" (space a).'
    )
    return Plan((), (Snippet(f"in {path}", text),), (note,))
