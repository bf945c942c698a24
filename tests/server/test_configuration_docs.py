"""docs/configuration.md says what the settings say."""

from __future__ import annotations

from pathlib import Path

from calomel.server.settings import ServerSettings

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def row(name: str) -> str:
    field = ServerSettings.model_fields[name]
    match field.default:
        case None:
            default = "unset"
        case ():
            default = "none"
        case bool() as value:
            default = str(value).lower()
        case value:
            default = f"`{value}`"
    return f"| `{name}` | {default} | {' '.join((field.description or '').split())} |"


def test_every_setting_stands_on_its_page_with_default_and_reason() -> None:
    text = PAGE.read_text()
    missing = [row(name) for name in ServerSettings.model_fields if row(name) not in text]
    assert "\n".join(missing) == ""


def test_no_other_setting_stands_there() -> None:
    names = [line.split("`")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert names == list(ServerSettings.model_fields)
