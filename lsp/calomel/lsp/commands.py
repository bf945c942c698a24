"""`workspace/executeCommand`: what the user does to suggestions, commands for the server itself, and for models."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from calomel.context.builder import part_texts
from calomel.families.recommended import Kind, recommended
from calomel.infer.client import device_of
from calomel.infer.completer import CompleteRequest, CompleterError, ModelInfo, with_line_feeds
from calomel.infer.models import Models
from calomel.infer.remote import shown, with_scheme
from calomel.infer.upstream.running import Running, running
from calomel.lsp.configuration import Configuration
from calomel.lsp.download import fetch, repository_of
from calomel.lsp.protocol import Editor
from calomel.lsp.services import Services
from calomel.lsp.suggestions import place_of
from calomel.lsp.text_sync import TextSync
from calomel.prompts.fim_tokens import format_named
from calomel.prompts.next_edit import class_called
from calomel.prompts.parts import FileText
from calomel.storage import available_bytes, processors
from calomel.storage.machine import free_bytes
from calomel.suggest.silence import Silence
from calomel.weights.folders import SHIPPED, known, weights_bytes
from calomel.workspace.settings import CHOICE, BackendSettings, chosen

if TYPE_CHECKING:
    from calomel.infer.listener import Listener

SECONDS_PER_MINUTE: Final = 60.0
MAX_SNOOZE_MINUTES: Final = 7 * 24 * 60

# What `calomel.useModel` takes besides the settings of a model: only until the server that is away is back.
MEANWHILE: Final = {"model": SHIPPED, "meanwhile": True}

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
        status, models = self._suggester.status(), self._services.models
        return {
            "state": "off" if status.off else models.state,
            "model": models.text.info.title if models.text.info else None,
            "edit_model": models.edits.info.title if models.edits is not None and models.edits.info else None,
            "message": models.message,
            "silences": dict(status.silences),
            "outcomes": dict(status.outcomes),
            "requests": status.requests,
            "asked": status.asked,
            "cached": status.cached,
            "latency_ms": {"p50": _milliseconds(status.latency_p50), "p95": _milliseconds(status.latency_p95)},
            "off": status.off and str(status.off),
            "last": None if status.last is None else dict(status.last),
            "last_request": models.text.last_request,
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

    async def _show_context(self, arguments: Arguments) -> dict[str, Any]:
        """What a request at `{textDocument, position}` would show a model elsewhere: secrets are hidden."""
        uri, position = place_of(arguments[0] if arguments else None)
        workspace, cursor = self._services.workspace, self._sync.find(uri, position)
        if not isinstance(cursor, Silence):
            await workspace.settled(cursor.document)
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
        file = FileText(situation.text, situation.offset - len(built.parts.prefix))
        request = with_line_feeds(CompleteRequest("fill", built.parts, file=file))
        texts = part_texts((await self._services.door.send(request)).request.parts)
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


_GB: Final = 1e9
_GIB: Final = 1024**3
_USES: Final = {"text": "for completions", "edits": "for next edits", "both": "for next edits and completions"}
# Bits of a weight, as most are published and as they may be read.
_SMALLER: Final = ((16, ""), (8, "int8"))
# Models of a server that write no text.
_NO_TEXT: Final = re.compile(r"embed|rerank", re.IGNORECASE)
# A model whose name stands for neither fill-in-the-middle tokens nor a format for edits.
_CHAT_ONLY: Final = "probably chat only: slower and less exact"


class ModelCommands:
    """The commands for models."""

    def __init__(
        self,
        models: Models,
        services: Services,
        configuration: Configuration,
        editor: Editor,
        is_meant: Callable[[Listener], Awaitable[bool]],
    ) -> None:
        """`is_meant` asks the user whether text may go to another user's program."""
        self._models = models
        self._editor, self._is_meant = editor, is_meant
        self._services = services
        self._configuration = configuration
        self._moving: asyncio.Task[ModelInfo] | None = None
        self.table: dict[str, Callable[[list[Any]], Any]] = {
            "calomel.models": self._list,
            "calomel.useModel": self._use,
        }

    async def _list(self, _: list[Any]) -> dict[str, Any]:
        servers, folders = await asyncio.gather(running(), asyncio.to_thread(list, self._folders()))
        nano, *others = folders
        models = [nano, *(each for server in servers for each in _behind(server)), *others]
        now = self._models.server
        for each in models:
            each["current"] = _comparable(chosen(now, each["settings"])) == _comparable(now.for_text)
        if not any(each["current"] for each in models):
            models.insert(0, self._present())
        return {"models": [*models, *self._fetchable({each["label"] for each in others})]}

    async def _use(self, arguments: list[Any]) -> dict[str, Any]:
        choice = arguments[0] if arguments else None
        if not isinstance(choice, Mapping):
            raise JsonRpcInvalidParams("calomel.useModel needs the settings of a model.")
        if choice == MEANWHILE:
            return await self._use_meanwhile()
        wanted, choice = _wished(choice)
        try:
            server = chosen(self._configuration.settings.backend, choice)
        except ValueError as error:
            raise JsonRpcInvalidParams(str(error)) from None
        if self._moving is not None:
            # Of several choices the last one counts.
            self._moving.cancel()
        before, moving = self._models.text.info, asyncio.create_task(self._switch(server, wanted))
        self._moving = moving
        try:
            info = await moving
        except CompleterError as error:
            problem = str(error).rstrip(".")
            stays = "The model does not answer" if before is None else f"{before.title} stays in use"
            return {"model": None, "message": f"{stays}: {problem}."}
        except asyncio.CancelledError:
            if moving is self._moving:  # the editor waits no longer
                moving.cancel()
                raise
            return {"model": None, "message": "You chose another model in the meantime."}
        self._configuration.choose(server)
        return {
            "model": info.title,
            "message": self._models.message,
            "settings": {name: choice.get(name) for name in CHOICE},
        }

    async def meanwhile(self) -> ModelInfo | None:
        """Have `nano` answer until the server that is away is back. Raises CompleterError."""
        return await self._models.stand_in(chosen(self._models.server, {"model": SHIPPED}))

    async def _use_meanwhile(self) -> dict[str, Any]:
        try:
            info = await self.meanwhile()
        except CompleterError as error:
            return {"model": None, "message": f"{SHIPPED} does not answer: {str(error).rstrip('.')}."}
        if info is None:
            return {"model": None, "message": f"No server has stopped. {self._models.message}"}
        return {"model": info.title, "message": self._models.message}

    async def _switch(self, server: BackendSettings, wanted: str | None) -> ModelInfo:
        if wanted is not None:
            await fetch(self._editor, wanted)
        try:
            return await self._models.switch(server)
        except CompleterError as error:
            if error.listener is None or not await self._is_meant(error.listener):
                raise
        return await self._models.switch(server)

    def _folders(self) -> Iterator[dict[str, Any]]:
        """Blocks: it reads folders."""
        server, free = self._models.server, available_bytes()
        for each in known():
            if each.name == SHIPPED:
                yield _choice(SHIPPED, f"comes with Calomel, runs on {device_of(server)}", {"model": SHIPPED})
                continue
            size = weights_bytes(each.path)
            settings, verdict = {"model": each.name}, ""
            if server.device == "cpu":
                fit = next(((bits, how) for bits, how in _SMALLER if size * bits / 16 < free), None)
                verdict = f", more than the {free / _GB:.1f} GB of memory that are free" if fit is None else ", fits"
                if fit is not None and fit[1]:
                    settings["quantize"], verdict = fit[1], f", fits in {fit[0]} bits"
            detail = f"in the {each.source}, runs on {device_of(server)}: {size / _GB:.1f} GB{verdict}"
            yield _choice(each.name, detail, settings)

    def _fetchable(self, there: set[str]) -> Iterator[dict[str, Any]]:
        """What suits this machine and is not among the models that are there, by their folders' names."""
        kind: Kind = "apple" if self._models.server.device == "mps" else "cpu"
        row = recommended(kind, free_bytes() / _GIB, processors())
        for each in dict.fromkeys((row.text, row.edits)):
            if each is not None and each.repository.replace("/", "--") not in there:
                detail = f"download, {each.disk} GB, {each.licence}; {_USES[each.use]}"
                yield _choice(each.title, detail, {"fetch": each.gguf}) | {"current": False}

    def _present(self) -> dict[str, Any]:
        """The model that answers, where it is none that was found."""
        now, info = self._models.server, None if self._models.out else self._models.text.info
        settings = {name: str(value) for name in ("url", "model", "upstream") if (value := getattr(now, name))}
        place = shown(str(now.url or now.upstream or ""))
        label = str(now.model or now.upstream_model or f"the model at {place}") if info is None else info.title
        detail = f"at {place}, from your settings" if place and place not in label else "from your settings"
        return _choice(label, detail, settings) | {"current": True}


def _wished(choice: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    """What to download first, if anything, and the settings of the choice. Raises JsonRpcInvalidParams."""
    wanted, upstream = choice.get("fetch"), choice.get("upstream")
    if wanted is not None:
        repository = repository_of(wanted)
        if repository is None:
            raise JsonRpcInvalidParams("fetch needs OWNER/NAME:QUANT.")
        return wanted, {"model": repository}
    return None, {**choice, "upstream": with_scheme(upstream)} if isinstance(upstream, str) else choice


def _choice(label: str, detail: str, settings: dict[str, str]) -> dict[str, Any]:
    return {"label": label, "detail": detail, "settings": settings}


def _comparable(server: BackendSettings) -> BackendSettings:
    """The same for the same model."""
    model = None if str(server.model) == SHIPPED else server.model
    return replace(server, model=model, upstream=server.upstream and server.upstream.rstrip("/"))


def _behind(server: Running) -> Iterator[dict[str, Any]]:
    place = f"{server.title} at {server.url}{', still loading' if server.loading else ''}"
    usable = [name for name in server.models if not _NO_TEXT.search(name)]
    for name in usable:
        named = {"upstream_model": name} if len(server.models) > 1 else {}
        known = format_named(name) or class_called(name)
        yield _choice(name, place if known else f"{place}, {_CHAT_ONLY}", {"upstream": server.url, **named})
    if not server.models:
        yield _choice(f"the model of {server.title}", place, {"upstream": server.url})
