"""Which models there are, and moving to one of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from pygls.exceptions import JsonRpcInvalidParams

from calomel.infer.client import ModelClient, device_of
from calomel.infer.completer import CompleterError, ModelInfo
from calomel.infer.upstream.running import Running, running
from calomel.lsp.configuration import Configuration
from calomel.lsp.services import Services
from calomel.storage.system import available_bytes
from calomel.weights.folders import SHIPPED, known, weights_bytes
from calomel.workspace.settings import CHOICE, ServerSettings, chosen

_GB: Final = 1e9
# Bits of a weight, as most are published and as they may be read.
_SMALLER: Final = ((16, ""), (8, "int8"), (4, "int4"))
# Models of a server that write no text.
_NO_TEXT: Final = re.compile(r"embed|rerank", re.IGNORECASE)


class Models:
    """The commands for models."""

    def __init__(self, model: ModelClient, services: Services, configuration: Configuration) -> None:
        self._model = model
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
        found = [nano, *(each for server in servers for each in _behind(server)), *others]
        now = self._model.server
        for each in found:
            each["current"] = _named(chosen(now, each["settings"])) == _named(now)
        if not any(each["current"] for each in found):
            found.insert(0, self._present())
        return {"models": found}

    async def _use(self, arguments: list[Any]) -> dict[str, Any]:
        choice = arguments[0] if arguments else None
        if not isinstance(choice, Mapping):
            raise JsonRpcInvalidParams("calomel.useModel needs the settings of a model.")
        try:
            server = chosen(self._configuration.settings.server, choice)
        except ValueError as error:
            raise JsonRpcInvalidParams(str(error)) from None
        if self._moving is not None:
            # Of several choices the last one counts.
            self._moving.cancel()
        before, moving = self._model.info, asyncio.create_task(self._model.switch(server))
        self._moving = moving
        try:
            info = await moving
        except CompleterError as error:
            said = str(error).rstrip(".")
            stays = "The model" if before is None else f"{before.id} stays in use, because the other model"
            return {"model": None, "message": f"{stays} does not answer: {said}."}
        except asyncio.CancelledError:
            if moving is self._moving:  # the editor waits no longer
                moving.cancel()
                raise
            return {"model": None, "message": "Another model was chosen meanwhile."}
        self._configuration.choose(server)
        await self._services.model_is(info)
        return {
            "model": info.id,
            "message": self._model.message,
            "settings": {name: choice.get(name) for name in CHOICE},
        }

    def _folders(self) -> Iterator[dict[str, Any]]:
        """Blocks: it reads folders."""
        server, free = self._model.server, available_bytes()
        for each in known():
            if each.name == SHIPPED:
                yield _choice(SHIPPED, f"comes with Calomel, runs on {device_of(server)}", {"model": SHIPPED})
                continue
            size = weights_bytes(each.path)
            settings, verdict = {"model": each.name}, ""
            if server.device == "cpu":
                found = next(((bits, how) for bits, how in _SMALLER if size * bits / 16 < free), None)
                verdict = f", more than the {free / _GB:.1f} GB of memory that are free" if found is None else ", fits"
                if found is not None and found[1]:
                    settings["quantize"], verdict = found[1], f", fits in {found[0]} bits"
            detail = f"in the {each.source}, runs on {device_of(server)}: {size / _GB:.1f} GB{verdict}"
            yield _choice(each.name, detail, settings)

    def _present(self) -> dict[str, Any]:
        """The model that answers, where it is none that was found."""
        now, info = self._model.server, self._model.info
        label = str(now.model or now.upstream_model or "the model of your settings") if info is None else info.id
        settings = {name: str(value) for name in ("url", "model", "upstream") if (value := getattr(now, name))}
        return _choice(label, "from your settings", settings) | {"current": True}


def _choice(label: str, detail: str, settings: dict[str, str]) -> dict[str, Any]:
    return {"label": label, "detail": detail, "settings": settings}


def _named(server: ServerSettings) -> ServerSettings:
    """The same for the same model."""
    model = None if str(server.model) == SHIPPED else server.model
    return replace(server, model=model, upstream=server.upstream and server.upstream.rstrip("/"))


def _behind(server: Running) -> Iterator[dict[str, Any]]:
    place, usable = f"{server.title} at {server.url}", [name for name in server.models if not _NO_TEXT.search(name)]
    for name in usable:
        named = {"upstream_model": name} if len(server.models) > 1 else {}
        yield _choice(name, place, {"upstream": server.url, **named})
    if not server.models:
        yield _choice(f"the model of {server.title}", place, {"upstream": server.url})
