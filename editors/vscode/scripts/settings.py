"""Writes the server's settings into package.json, from the models that the server itself reads them with.

Run it with the project's own Python; with `--check` it writes nothing and exits with 1 if they are not current.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import Field, fields
from pathlib import Path
from types import UnionType
from typing import Any, Final, get_args, get_type_hints

from calomel.workspace.preferences import Settings

MANIFEST: Final = Path(__file__).parents[1] / "package.json"
TITLES: Final = {
    "suggest": "Suggestions",
    "workspace": "Workspace",
    "privacy": "Privacy",
    "server": "Model and server",
    "log": "Log",
}


def server_sections() -> list[dict[str, Any]]:
    """`contributes.configuration` for the sections that the server knows."""
    hints = get_type_hints(Settings)
    return [_section(name, hints[name]) for name in TITLES]


def with_current_settings(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with the extension's own settings as they are and the server's as they should be."""
    contributes = dict(manifest["contributes"])
    own = [part for part in contributes["configuration"] if part["title"] not in TITLES.values()]
    contributes["configuration"] = [*own, *server_sections()]
    return {**manifest, "contributes": contributes}


def _section(name: str, model: Any) -> dict[str, Any]:
    types = get_type_hints(model)
    properties = {f"calomel.{name}.{one.name}": _property(one, types[one.name]) for one in fields(model)}
    return {"title": TITLES[name], "properties": properties}


def _property(one: Field[Any], kind: Any) -> dict[str, Any]:
    rules = one.metadata
    found: dict[str, Any] = _shape(rules, kind)
    default = one.default_factory() if callable(one.default_factory) else one.default
    found["default"] = list(default) if isinstance(default, tuple) else default
    found["markdownDescription"] = rules["why"]
    if rules.get("user"):
        # A workspace could send your code elsewhere, or keep what you do not want kept.
        return {**found, "scope": "machine", "x-workspace": "never"}
    found["scope"] = "resource"
    if rules.get("limit"):
        found["x-workspace"] = "lower"
    elif rules.get("of") is str:
        found["x-workspace"] = "add"
    return found


def _shape(rules: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """The part of JSON Schema that VS Code's settings editor understands."""
    kinds = set(get_args(kind) if isinstance(kind, UnionType) else (kind,))
    null = ["null"] if rules.get("optional") else []
    if "of" in rules:
        of_strings = {"type": "array", "items": {"type": "string"}}
        return of_strings if rules["of"] is str else {"type": "object", "additionalProperties": {"type": "boolean"}}
    if "choices" in rules and "low" in rules:
        level = {
            "anyOf": [
                {"type": "string", "enum": list(rules["choices"])},
                {"type": "number", "minimum": rules["low"], "maximum": rules["high"]},
            ]
        }
        return {"type": "object", "additionalProperties": level} if rules.get("table") else level
    if "choices" in rules:
        return {"type": "string", "enum": list(rules["choices"])}
    if bool in kinds:
        return {"type": "boolean"}
    if "low" in rules:
        number = "integer" if int in kinds else "number"
        return {"type": [number, *null] if null else number, "minimum": rules["low"], "maximum": rules["high"]}
    return {"type": ["string", *null] if null else "string"}


def main(arguments: list[str]) -> int:
    """Write or check; the exit status."""
    text = MANIFEST.read_text(encoding="utf-8")
    current = json.dumps(with_current_settings(json.loads(text)), indent=2, ensure_ascii=False) + "\n"
    if text == current:
        return 0
    if "--check" in arguments:
        sys.stderr.write("package.json: the settings are not current; run editors/vscode/scripts/settings.py\n")
        return 1
    MANIFEST.write_text(current, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
