"""`workspace/executeCommand`: what the user does to suggestions, and commands for the server itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from calomel.context.builder import part_texts
from calomel.lsp.configuration import Configuration
from calomel.lsp.services import Services
from calomel.lsp.suggestions import place_of
from calomel.lsp.text_sync import TextSync
from calomel.suggest.silence import Silence

SECONDS_PER_MINUTE: Final = 60.0
MAX_SNOOZE_MINUTES: Final = 7 * 24 * 60

Arguments = list[Any]


class Commands:
    """One handler for all commands. Malformed arguments are answered with -32602."""

    def __init__(
        self,
        services: Services,
        configuration: Configuration,
        sync: TextSync,
        changed: Callable[[], None],
        clock: Callable[[], float],
        log: Path,
    ) -> None:
        """`changed` is called when suggestions are switched on or off; `table` has each command's handler."""
        self._services = services
        self._suggester = services.suggester
        self._configuration = configuration
        self._sync = sync
        self._changed = changed
        self._clock = clock
        self.table: dict[str, Callable[[Arguments], Any]] = {
            "calomel.accept": self._accept,
            "calomel.reject": self._reject,
            "calomel.ignore": self._ignore,
            "calomel.status": self._status,
            "calomel.toggle": self._toggle,
            "calomel.snooze": self._snooze,
            "calomel.showContext": self._show_context,
            "calomel.showLog": lambda _: {"path": str(log)},
            "calomel.reloadSettings": self._reload,
            # Clients of Copilot's protocol send these unasked, whatever command an item carried.
            "github.copilot.didAcceptCompletionItem": self._accept,
            "github.copilot.didAcceptNextEditSuggestionItem": self._accept,
            "github.copilot.didRejectNextEditSuggestionItem": self._reject,
            "github.copilot.didIgnoreNextEditSuggestionItem": self._ignore,
        }

    async def execute(self, params: types.ExecuteCommandParams) -> Any:
        """Handle `workspace/executeCommand`, as a request or as a notification."""
        command = self.table.get(params.command)
        if command is None:
            raise JsonRpcInvalidParams("Unknown command.")
        value = command(list(params.arguments or []))
        return await value if isinstance(value, Awaitable) else value

    def _accept(self, arguments: Arguments) -> bool:
        self._suggester.accepted(_named(arguments)[0])
        return True

    def _reject(self, arguments: Arguments) -> bool:
        self._suggester.rejected(*_named(arguments))
        return True

    def _ignore(self, arguments: Arguments) -> bool:
        suggestion_id, reason = _named(arguments)
        self._suggester.ignored(suggestion_id, reason or "unsaid")
        return True

    def _status(self, _: Arguments) -> dict[str, Any]:
        status, model = self._suggester.status(), self._services.model
        return {
            "state": "off" if status.off else model.state,
            "model": model.info.id if model.info else None,
            "message": model.message,
            "silences": dict(status.silences),
            "outcomes": dict(status.outcomes),
            "requests": status.requests,
            "asked": status.asked,
            "cached": status.cached,
            "latency_ms": {"p50": _milliseconds(status.latency_p50), "p95": _milliseconds(status.latency_p95)},
            "off": status.off and str(status.off),
            "last": None if status.last is None else dict(status.last),
            "last_request": model.last_request,
            "withheld": status.withheld,
            "index": self._services.index_status,
        }

    def _toggle(self, arguments: Arguments) -> dict[str, Any]:
        wish = arguments[0] if arguments else {}
        if not isinstance(wish, dict):
            raise JsonRpcInvalidParams("calomel.toggle needs an object.")
        scope = wish.get("scope", "global")
        needed = {"global": None, "language": "language", "file": "uri"}
        if scope not in needed:
            raise JsonRpcInvalidParams("The scope must be global, language or file.")
        uri, language, enabled = wish.get("uri"), wish.get("language"), wish.get("enabled")
        for name, value in (("uri", uri), ("language", language)):
            if not isinstance(value, str | None) or (value is None and needed[scope] == name):
                raise JsonRpcInvalidParams(f"The scope {scope} needs a {name}.")
        if not isinstance(enabled, bool | None):
            raise JsonRpcInvalidParams("enabled must be true or false.")
        now = self._suggester.toggle(scope, uri=uri, language=language, enabled=enabled)
        self._changed()
        return {"scope": scope, "enabled": now}

    def _snooze(self, arguments: Arguments) -> dict[str, Any]:
        minutes = arguments[0] if arguments else 0
        if not isinstance(minutes, int | float) or isinstance(minutes, bool) or not 0 <= minutes <= MAX_SNOOZE_MINUTES:
            raise JsonRpcInvalidParams("calomel.snooze needs minutes, from 0 to a week.")
        self._suggester.snooze(self._clock() + SECONDS_PER_MINUTE * minutes if minutes else None)
        self._changed()
        return {"minutes": minutes}

    def _show_context(self, arguments: Arguments) -> dict[str, Any]:
        """What a request at `{textDocument, position}` would show the model, with secrets masked as they are for it."""
        uri, position = place_of(arguments[0] if arguments else None)
        workspace, cursor = self._services.workspace, self._sync.find(uri, position)
        verdict = None if isinstance(cursor, Silence) else workspace.verdict(cursor.document)
        if verdict is not None and not verdict.allowed:
            cursor = Silence.kept(verdict.reason)
        if isinstance(cursor, Silence):
            return {"parts": [], "reason": cursor.reason.value, "message": cursor.message}
        situation = workspace.situation(uri, cursor.offset)
        if situation is None:
            return {"parts": []}
        budget = self._services.budget()
        built = self._services.builder.build(situation, budget)
        texts = part_texts(built.parts)
        return {
            "parts": [
                {"part": each.part, "tokens": each.tokens, "why": each.why, "text": texts.get(each.part, "")}
                for each in built.accounts
            ],
            "budget": budget,
        }

    async def _reload(self, _: Arguments) -> dict[str, Any]:
        self._suggester.filter.forget()
        await self._configuration.pull()
        return {"problems": self._configuration.problems}


def _named(arguments: Arguments) -> tuple[str, str | None]:
    """The id of a suggestion, and the reason if there is one."""
    suggestion_id, reason, *_ = [*arguments, None, None]
    if not isinstance(suggestion_id, str):
        raise JsonRpcInvalidParams("The argument must be the id of a suggestion.")
    return suggestion_id, reason if isinstance(reason, str) else None


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 2)
