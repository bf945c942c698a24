"""Zed: edit predictions come over HTTP, from `calomel serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from calomel.cli.editors.here import Here
from calomel.cli.editors.plan import Plan
from calomel.cli.editors.settings_file import merged, value
from calomel.cli.errors import InputError

VARIABLE: Final = "ZED_OPEN_AI_COMPATIBLE_EDIT_PREDICTION_API_KEY"
_ROUTE: Final = "/v1/completions"
# Zed asks for four times as many tokens; a region has some 350.
_TOKENS: Final = 512


def path_of(here: Here) -> Path:
    """Zed's settings; the same place on Linux and on a Mac."""
    return (here.home / ".config" if here.mac else here.config) / "zed" / "settings.json"


def plan(here: Here, file: Path | None = None) -> Plan:
    """Edit predictions from this server. Raises InputError."""
    if here.url is None:
        raise InputError("no server runs, and its port is left to chance: say --url http://127.0.0.1:PORT")
    path = file or path_of(here)
    wanted = {
        "edit_predictions": {
            "provider": "open_ai_compatible_api",
            "open_ai_compatible_api": {
                "api_url": here.url.rstrip("/") + _ROUTE,
                # A name from which older versions infer the same format.
                "model": "zeta2.1",
                "prompt_format": "zeta2_1",
                "max_output_tokens": _TOKENS,
            },
        }
    }
    notes = []
    if here.token is not None:
        notes.append(
            f"Zed sends the server's token when it finds it in the environment that it is started from:\n"
            f'    export {VARIABLE}="$(cat {here.token})"\n'
            "or type it in where Zed's own settings show the provider. It never belongs into settings.json."
        )
    else:
        notes.append(f"If your server wants a token, Zed takes it from {VARIABLE}.")
    if value(path, "features", "edit_prediction_provider") is not None:
        notes.append("Your features.edit_prediction_provider is what older versions of Zed read: remove it.")
    if value(path, "show_edit_predictions") is False:
        notes.append("Your show_edit_predictions is false: nothing is shown before you turn it on.")
    notes.append("Keep the server running: calomel serve --workspace FOLDER. docs/zed.md says what to expect.")
    return Plan((merged(path, wanted, "  "),), (), tuple(notes))
