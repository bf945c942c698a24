"""What the client said about itself in `initialize`, read without trust: a wrong value counts as not said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Client:
    """One editor.

    Attributes:
        name: as it calls itself; empty when it does not.
        process_id: whose end ends the session; None for none.
        folders: of the workspace, those that lie on this machine.
        options: our own part of `initializationOptions`.
        encodings: of positions, that it offers, best first.
        speaks_copilot: it follows the protocol of Copilot's language server: it sends `editorPluginInfo`.
        inline_completion: it can show inline completions.
        configuration: it answers `workspace/configuration`.
        progress: it shows work-done progress that the server begins.
        document_changes: it takes versioned edits in a `WorkspaceEdit`.
        code_action_literals: it takes code actions that carry their edit.
    """

    name: str = ""
    process_id: int | None = None
    folders: tuple[Path, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    encodings: tuple[str, ...] = ()
    speaks_copilot: bool = False
    inline_completion: bool = False
    configuration: bool = False
    progress: bool = False
    document_changes: bool = False
    code_action_literals: bool = False

    @property
    def extensions(self) -> bool:
        """It knows our own notifications and reports what it shows."""
        return self.options.get("extensions") is True

    @property
    def configuration_replaces(self) -> bool:
        """Its answer to `workspace/configuration` is all of its settings: what `initialize` said is old by then."""
        return self.options.get("configuration_replaces") is True

    @property
    def completion_item(self) -> bool:
        """The user wants suggestions as items of the completion popup."""
        return self.options.get("completion_item") is True

    @property
    def debug(self) -> bool:
        """Answer the requests that tests and measurements ask."""
        return self.options.get("debug") is True

    @property
    def encoding(self) -> str:
        """Of positions. UTF-16, as clients of Copilot's protocol assume whatever was agreed on; another one by wish."""
        wanted = self.options.get("position_encoding")
        return wanted if isinstance(wanted, str) and wanted in self.encodings else "utf-16"


def read_client(params: Mapping[str, Any]) -> Client:
    """The client behind these `InitializeParams`."""
    options = _mapping(params, "initializationOptions")
    process_id = params.get("processId")
    return Client(
        name=str(_mapping(params, "clientInfo").get("name", "")),
        process_id=process_id if isinstance(process_id, int) and process_id > 0 else None,
        folders=_folders(params),
        options=own_options(options),
        encodings=tuple(str(one) for one in _list(_mapping(params, "capabilities", "general"), "positionEncodings")),
        speaks_copilot="editorPluginInfo" in options,
        inline_completion="inlineCompletion" in _mapping(params, "capabilities", "textDocument"),
        configuration=_mapping(params, "capabilities", "workspace").get("configuration") is True,
        progress=_flag(params, "window", "workDoneProgress"),
        document_changes=_flag(params, "workspace", "workspaceEdit", "documentChanges"),
        code_action_literals="codeActionLiteralSupport"
        in _mapping(params, "capabilities", "textDocument", "codeAction"),
    )


# What `initializationOptions` may hold beside each other; everything else there belongs to other servers' clients.
_OWN = ("workspace", "privacy", "suggest", "server", "log")
_DOOR = ("extensions", "configuration_replaces", "completion_item", "debug", "position_encoding")


def own_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Our options in `initializationOptions`: those under `calomel`, else the sections themselves."""
    own = options.get("calomel")
    if isinstance(own, dict):
        return dict(own)
    return {name: options[name] for name in (*_OWN, *_DOOR) if name in options}


def settings_in(options: Mapping[str, Any]) -> dict[str, Any]:
    """Of our options, those that are settings, not agreements between client and server."""
    return {name: value for name, value in options.items() if name not in _DOOR}


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
    uris = [entry.get("uri") for entry in _list(params, "workspaceFolders") if isinstance(entry, dict)]
    if not uris and params.get("rootUri"):
        uris = [params["rootUri"]]
    paths = [path for path in map(local_path, uris) if path is not None]
    root = params.get("rootPath")
    if not uris and isinstance(root, str) and root.startswith("/"):
        paths = [Path(root)]
    return tuple(dict.fromkeys(paths))


def _mapping(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        inner = value.get(key)
        if not isinstance(inner, dict):
            return {}
        value = inner
    return value


def _list(value: Mapping[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    return found if isinstance(found, list) else []


def _flag(params: Mapping[str, Any], *keys: str) -> bool:
    return _mapping(params, "capabilities", *keys[:-1]).get(keys[-1]) is True


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


# Clients take any name as a sign that they may ask for suggestions.
SIGNED_IN: Final = {"status": "OK", "user": "calomel"}


def check_status(_: Mapping[str, Any]) -> dict[str, str]:
    """`checkStatus`, `signInConfirm`."""
    return dict(SIGNED_IN)


def sign_in(_: Mapping[str, Any]) -> dict[str, str]:
    """`signIn`, `signInInitiate`."""
    return {"status": "AlreadySignedIn", "user": SIGNED_IN["user"]}


def sign_out(_: Mapping[str, Any]) -> dict[str, str]:
    """`signOut`: there is nothing to leave."""
    return {"status": "OK"}


def ok(_: Mapping[str, Any]) -> str:
    """`setEditorInfo`, `notifyShown` and the like."""
    return "OK"


def nothing(_: Mapping[str, Any]) -> None:
    """Notifications that ask for nothing."""
