"""The answer to `initialize`, as plain JSON: it is sent before anything that takes time to import is imported."""

from __future__ import annotations

from typing import Any, Final

from calomel.lsp.client import Client

COMMANDS: Final = (
    "calomel.accept",
    "calomel.reject",
    "calomel.ignore",
    "calomel.status",
    "calomel.toggle",
    "calomel.snooze",
    "calomel.showContext",
    "calomel.showLog",
    "calomel.reloadSettings",
)
CODE_ACTION_KIND: Final = "refactor.rewrite"
INCREMENTAL: Final = 2


def initialize_result(client: Client) -> dict[str, Any]:
    """An `InitializeResult` for this client; without our version, which takes long to find out (`getVersion`)."""
    capabilities: dict[str, Any] = {
        "positionEncoding": client.encoding,
        "textDocumentSync": {"openClose": True, "change": INCREMENTAL, "save": {"includeText": False}},
        # Not an empty object: lsp-mode reads that as nil.
        "inlineCompletionProvider": {"workDoneProgress": False},
        "codeActionProvider": {"codeActionKinds": [CODE_ACTION_KIND]},
        "executeCommandProvider": {"commands": list(COMMANDS)},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
    }
    if client.completion_item:
        capabilities["completionProvider"] = {"resolveProvider": False}
    return {"capabilities": capabilities, "serverInfo": {"name": "calomel"}}
