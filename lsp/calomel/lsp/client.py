"""What the client says about itself in `initialize`, read defensively: a wrong value counts as not given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Client:
    """One editor.

    Attributes:
        process_id: whose end ends the session; None for none.
        folders: the workspace folders that are on this machine.
        options: our own part of `initializationOptions`.
        speaks_copilot: it speaks the protocol of Copilot's language server: it sends `editorPluginInfo`.
        inline_completion: it can show inline completions.
        configuration: it answers `workspace/configuration`.
        progress: it shows work-done progress that the server starts.
        document_changes: it takes versioned edits in a `WorkspaceEdit`.
        code_action_literals: it takes code actions that carry their edit.
        extensions: it knows our own notifications and reports what it shows.
        other_files: it can show a next edit in another document than the one it asks about.
        extends: it asks again when told that the text it shows goes on.
        configuration_replaces: its response to `workspace/configuration` holds all of its settings and replaces what
            `initialize` said. Only with `configuration_filtered`: otherwise a repository could replace them.
        configuration_filtered: that response, and what it pushes, hold nothing that a workspace set but may not set
            (the settings that the reference calls *yours*).
        completion_item: the user wants suggestions as items of the completion popup.
        debug: answer the requests that tests and measurements send.
    """

    process_id: int | None = None
    folders: tuple[Path, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    speaks_copilot: bool = False
    inline_completion: bool = False
    configuration: bool = False
    progress: bool = False
    document_changes: bool = False
    code_action_literals: bool = False
    extensions: bool = False
    other_files: bool = False
    extends: bool = False
    configuration_replaces: bool = False
    configuration_filtered: bool = False
    completion_item: bool = False
    debug: bool = False


def read_client(params: Mapping[str, Any]) -> Client:
    """The client behind these `InitializeParams`."""
    options = _at(params, "initializationOptions")
    own = own_options(options if isinstance(options, dict) else {})
    process_id = params.get("processId")
    filtered = own.get("configuration_filtered") is True

    def can(*keys: str) -> bool:
        return _at(params, "capabilities", *keys) is True

    return Client(
        process_id=process_id if isinstance(process_id, int) and process_id > 0 else None,
        folders=_folders(params),
        options=own,
        speaks_copilot=_at(options, "editorPluginInfo") is not None,
        inline_completion=_at(params, "capabilities", "textDocument", "inlineCompletion") is not None,
        configuration=can("workspace", "configuration"),
        progress=can("window", "workDoneProgress"),
        document_changes=can("workspace", "workspaceEdit", "documentChanges"),
        code_action_literals=_at(params, "capabilities", "textDocument", "codeAction", "codeActionLiteralSupport")
        is not None,
        extensions=own.get("extensions") is True,
        other_files=own.get("other_files") is True,
        extends=own.get("extends") is True,
        configuration_replaces=filtered and own.get("configuration_replaces") is True,
        configuration_filtered=filtered,
        completion_item=own.get("completion_item") is True,
        debug=own.get("debug") is True,
    )


# The keys of `initializationOptions` that are ours (`server` is the earlier name of `backend`); all others belong to
# clients of other servers.
_OWN = ("workspace", "privacy", "suggest", "backend", "log", "server")
_AGREEMENTS = (
    "extensions", "other_files", "extends", "configuration_replaces", "configuration_filtered", "completion_item",
    "debug",
)  # fmt: skip


def own_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Our options in `initializationOptions`: those under `calomel`, else the sections themselves."""
    own = options.get("calomel")
    if isinstance(own, dict):
        return dict(own)
    return {name: options[name] for name in (*_OWN, *_AGREEMENTS) if name in options}


def settings_in(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of our options that are settings, not agreements between client and server."""
    return {name: value for name, value in options.items() if name not in _AGREEMENTS}


def local_path(uri: object) -> Path | None:
    """Where a `file:` URI points on this machine; None for any other."""
    if not isinstance(uri, str) or not uri.startswith("file://"):
        return None
    host, slash, path = uri[len("file://") :].partition("/")
    if not slash or host not in {"", "localhost"}:
        return None
    path = slash + path.partition("#")[0].partition("?")[0]
    if "%" in path:
        from urllib.parse import unquote  # takes a tenth of the time until `initialize` is answered

        path = unquote(path)
    return None if "\0" in path else Path(path)


def _folders(params: Mapping[str, Any]) -> tuple[Path, ...]:
    entries, root = params.get("workspaceFolders"), params.get("rootPath")
    uris = [_at(entry, "uri") for entry in entries] if isinstance(entries, list) else []
    if not uris and params.get("rootUri"):
        uris = [params["rootUri"]]
    if not uris and isinstance(root, str) and root.startswith("/"):
        return (Path(root),)
    return tuple(dict.fromkeys(path for path in map(local_path, uris) if path is not None))


def _at(value: Any, *keys: str) -> Any:
    """The value under these nested keys; None where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


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
    "calomel.models",
    "calomel.useModel",
)
CODE_ACTION_KIND: Final = "refactor.rewrite"
INCREMENTAL: Final = 2


def initialize_result(client: Client) -> dict[str, Any]:
    """An `InitializeResult` for this client; without our version, which is slow to determine (`getVersion`)."""
    capabilities: dict[str, Any] = {
        # Clients of Copilot's protocol assume it, whatever is negotiated.
        "positionEncoding": "utf-16",
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


# What clients of Copilot's protocol send, and the responses. They take any user name as permission to ask for
# suggestions.
_SIGNED_IN: Final = {"status": "OK", "user": "calomel"}
_SIGNING_IN: Final = {"status": "AlreadySignedIn", "user": "calomel"}
ANSWERS: Final[Mapping[str, Any]] = {
    "checkStatus": _SIGNED_IN,
    "signIn": _SIGNING_IN,
    "signInInitiate": _SIGNING_IN,
    "signInConfirm": _SIGNED_IN,
    "signOut": {"status": "OK"},
    "setEditorInfo": "OK",
    "didChangeStatus": None,
    "notifyShown": "OK",
    "notifyAccepted": "OK",
    "notifyRejected": "OK",
}
