"""The model that a command asks: the one of its options, else the user's choice for all editors, else nano."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from calomel.cli.output import InputError, address, check_device, say, without_credentials

if TYPE_CHECKING:
    from calomel.infer.completer import ModelInfo
    from calomel.infer.upstream.completer import UpstreamCompleter
    from calomel.server.upstream import Upstream
    from calomel.workspace.settings import BackendSettings

AnyModel: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", metavar="MODEL", help="A model's name, folder or GGUF file. Default: yours, or nano."),
]
AnyUpstream: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--upstream",
        metavar="URL",
        callback=address,
        help="Use the model of this server. Default: yours, if it is one.",
    ),
]
UpstreamModel: TypeAlias = Annotated[
    str | None, typer.Option(help="Model to use on the upstream server. Default: the only one.")
]
AnyDevice: TypeAlias = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:N or mps. Default: yours, or cpu.")]
_OPTIONS: Final = "--model, or --upstream"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model.

    Attributes:
        model: its folder or GGUF file; None for nano, or for an upstream's.
        upstream: the server that has it; None for one of this machine's own.
        device: where it runs, for a model of this machine.
        threads: of the processor; None for the usual.
        by_settings: no option names it: it is the user's choice for all editors.
    """

    model: Path | None
    upstream: Upstream | None
    device: str
    threads: int | None
    by_settings: bool

    @property
    def options(self) -> dict[str, Any]:
        """As the options of benches and replays have it."""
        return {name: getattr(self, name) for name in ("model", "upstream", "device", "threads")}

    @property
    def told(self) -> dict[str, str | None]:
        """As reports name it."""
        url, name = (None, None) if self.upstream is None else (self.upstream.url, self.upstream.model)
        return {"model": None if self.model is None else str(self.model), "upstream": url, "upstream_model": name}

    @property
    def title(self) -> str:
        """The model in words."""
        if self.upstream is None:
            return "nano" if self.model is None else self.model.name
        return f"{self.upstream.model or 'the model'} at {without_credentials(self.upstream.url)}"

    def outside(self) -> UpstreamCompleter | None:
        """As `calomel.server.upstream.outside`."""
        from calomel.server.upstream import outside

        return outside(self.model, self.device, self.threads, self.upstream)

    def info(self) -> ModelInfo:
        """The model, from its files alone, or as its server describes it.

        Raises:
            InputError, OSError, StartError: there is none.
            CompleterError: the server does not answer.
        """
        from calomel.cli.output import model_info

        client = self.outside()
        if client is None:
            return model_info(self.model)
        try:
            client.look()
            return client.model
        finally:
            client.close()


def chosen(given: Mapping[str, Any]) -> Chosen:
    """The model of a command's options: `model`, `upstream`, `upstream_model`, `device` and `threads`, if it has them.

    Raises InputError, which names the option, for what cannot be used.
    """
    from calomel.server.upstream import Upstream
    from calomel.workspace.settings import BackendSettings

    model, upstream, named = given["model"], given["upstream"], given["upstream_model"]
    if model is not None and upstream is not None:
        raise InputError("--model and --upstream are both given", "remove one of them")
    server = BackendSettings() if model is not None or upstream is not None else _settings()
    by_settings = bool(server.model or server.upstream)
    url = upstream or server.upstream
    if named is not None and url is None:
        raise InputError("--upstream-model needs the address of its server", "add --upstream URL")
    threads, device = given.get("threads") or server.threads, given["device"] or server.device
    if url is not None:
        key = None if server.upstream_key_file is None else str(server.upstream_key_file)
        form = None if server.upstream_format == "auto" else server.upstream_format
        asked = Upstream(url, named or server.upstream_model, form, server.upstream_fim, server.upstream_edit, key)
        return Chosen(None, asked, "cpu", threads, by_settings)
    if model is not None:
        place = _place(f"--model {model}", model)
    else:
        place = None if server.model is None else _place("backend.model", str(server.model))
    from calomel.infer import llama_cpp

    if place is None or not llama_cpp.opens(place):
        check_device(device)
    return Chosen(place, None, device, threads, by_settings and place is not None)


def _settings() -> BackendSettings:
    """The user's choice for all editors. Raises InputError for one that no command can ask."""
    from calomel.workspace.settings import load_settings, user_settings_path

    settings, problems = load_settings(user_toml=user_settings_path())
    for problem in problems:
        say(str(problem), err=True)
    server = settings.backend
    if server.url is not None:
        url = without_credentials(server.url)
        raise InputError(f"your choice is the Calomel server at {url}, which this command cannot ask", _OPTIONS)
    return server


def _place(source: str, name: str) -> Path | None:
    """The folder of a model, or the GGUF file that llama.cpp opens; None for nano. Raises InputError.

    `source` is what names it.
    """
    from calomel.infer import llama_cpp
    from calomel.weights import gguf_in
    from calomel.weights.folders import SHIPPED, ModelNameError, folder_of, place_of
    from calomel.weights.gguf import GgufError, check_gguf

    if name == SHIPPED and not Path(name).is_dir():
        return None
    try:
        place = place_of(name)
        packed = gguf_in(place) if llama_cpp.opens(place) else None
        if packed is not None:
            check_gguf(packed)
        return folder_of(name) if packed is None else place
    except (ModelNameError, GgufError) as error:
        raise InputError(f"{source}: {error}") from error
