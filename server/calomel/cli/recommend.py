"""`calomel models recommend`: what to run on this machine, and the one command that gets it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from calomel.cli.output import InputError, TableForm, markdown, say, table_form
from calomel.families.recommended import ON_A_CPU, ROWS, Kind, Recommended, Row, recommended
from calomel.storage.machine import Machine, this_machine

if TYPE_CHECKING:
    from calomel.infer.upstream.running import Running

_MOST_GIB: Final = 1_000_000.0
_GIB: Final = 1024**3
_GB: Final = 1e9
_LLAMA_SERVER: Final = "llama-server"
_LLAMA_HOME: Final = "https://github.com/ggml-org/llama.cpp"
_OLLAMA: Final = "http://127.0.0.1:11434"
_EDITS: Final = " --edits"
_KINDS: Final[dict[str, Kind]] = {"cpu": "cpu", "cuda": "gpu", "mps": "apple"}
_USES: Final = {
    "text": "next edits then come from Calomel's rules",
    "edits": "made for next edits; its completions are less good",
    "both": "it does both",
}
_HOSTED: Final = "calomel models use --upstream https://api.inceptionlabs.ai --upstream-key-file FILE"


def recommend(
    memory_gib: Annotated[
        float | None, typer.Option(min=0.1, max=_MOST_GIB, help="Memory to plan for. Default: this machine's.")
    ] = None,
    device: Annotated[
        Literal["cpu", "cuda", "mps"] | None,
        typer.Option(help="cpu, cuda for an NVIDIA or AMD GPU, mps for an Apple one. Default: this machine's best."),
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="Cores of the CPU. Default: this machine's.")] = None,
    guide: Annotated[bool, typer.Option("--guide", help="List every kind of machine instead.")] = False,
) -> None:
    """Suggest a model for this machine, and print the command that gets it.

    It looks at memory, GPU, disk, and at the model servers that run here.
    """
    if guide:
        form = table_form()
        say(machines_table(form).rstrip("\n"), verbatim=form is markdown)
        return
    import asyncio

    from calomel.infer.upstream.running import running

    machine, servers = this_machine(), asyncio.run(running())
    row = row_for(machine, device, memory_gib, cores)
    place, free = _disk()
    say(f"This machine: {_described(machine)}, {free / _GB:.1f} GB of disk free for {place}.")
    say(f"Here: {', '.join(_present(servers))}.")
    say(f"Planned for: {row.machine}.")
    if row.text is None or row.edits is None:
        from calomel.infer.extras import has_engine, installing_engine

        say(f"\nRun nano, which is built in: larger ones need more memory or cores. {ON_A_CPU}")
        say("Models for every kind of machine: calomel models recommend --guide")
        if not has_engine():
            say(f"  {installing_engine()}")
        return
    same, needed = row.text == row.edits, row.text.memory + row.edits.memory
    fits = row.holds_both(memory_gib)
    shown = {"completions": row.text} | ({} if same else {"next edits": row.edits})
    for aim, model in shown.items():
        say(f"\nFor {aim}: {model.title}")
        say(
            f"  {model.disk:.1f} GB of disk, about {model.memory:.1f} GB of memory, {model.licence}; {_USES[model.use]}"
        )
        say(f"  {model.figure}")
        if model.disk * _GB > free:
            say(f"  It does not fit on the disk: {free / _GB:.1f} GB are free.")
        for line in commands(model, row.kind, servers, edits=fits and model is row.edits):
            say(f"  {line}")
    if row.kind == "cpu":
        say(f"\n{ON_A_CPU}")
    if not same:
        together = f"Both together need about {needed:.1f} GB"
        say(f"\n{together}, and fit." if fits else f"\n{together}: choose by what you want more.")
    say("To see what you have: calomel models list")


def row_for(machine: Machine, device: str | None = None, memory: float | None = None, cores: int | None = None) -> Row:
    """The row of a machine, or of one with this device, GiB of memory and cores.

    A GPU with too little memory counts as none. Raises InputError for a device that is not here.
    """
    gpu, count = machine.gpu, cores or machine.cores
    here = "mps" if gpu is not None and gpu.maker == "Apple" else "cuda" if gpu is not None else "cpu"
    if device not in {None, "cpu", here} and memory is None:
        raise InputError(f"{device} is not a device of this machine", "--device cpu, or add --memory-gib")
    kind = _KINDS[device or here]
    if kind != "cpu":
        row = recommended(kind, (gpu.memory / _GIB if gpu else 0.0) if memory is None else memory)
        if row.text is not None or device is not None:
            return row
    return recommended("cpu", machine.free / _GIB if memory is None else memory, count)


def commands(model: Recommended, kind: Kind, servers: Sequence[Running] = (), *, edits: bool = False) -> Iterator[str]:
    """The lines that get a model and choose it: in Ollama, in llama.cpp inside, or in llama.cpp's own server.

    `edits`: for next edits only.
    """
    only, port = (_EDITS, 8081) if edits else ("", 8080)
    ollama = next((each.url for each in servers if each.title == "Ollama"), None)
    has_llama = find_spec("xllamacpp") is not None
    if kind == "hosted":
        yield _HOSTED
    elif model.ollama and (ollama or shutil.which("ollama")) and not (has_llama and kind != "gpu"):
        yield f"ollama pull {model.ollama} && calomel models use --upstream {ollama or _OLLAMA} {model.ollama}{only}"
    elif kind == "gpu":
        if not shutil.which(_LLAMA_SERVER):
            yield f"first install llama.cpp ({_LLAMA_HOME}), or Ollama (https://ollama.com) and run this again"
        yield served(model, port)
        yield f"in another terminal: calomel models use --upstream http://127.0.0.1:{port}{only}"
    elif _is_here(model):
        yield f"calomel models use {model.repository}{_DEVICES.get(kind, '')}{only}"
    else:
        if not has_llama:
            from calomel.infer.extras import installing

            yield installing("'calomel[llama]'") + " &&"
        yield f"{fetched(model, kind)}{only}"


def _is_here(model: Recommended) -> bool:
    from calomel.weights.folders import models_folder

    return (models_folder() / model.repository.replace("/", "--")).is_dir()


_DEVICES: Final[dict[Kind, str]] = {"apple": " --device mps"}


def fetched(model: Recommended, kind: Kind) -> str:
    """The command that fetches a model and chooses it."""
    return f"calomel models fetch {model.gguf} --use{_DEVICES.get(kind, '')}"


def served(model: Recommended, port: int = 8080) -> str:
    """The command that runs a model in llama.cpp's own server, which fetches it first."""
    return f"{_LLAMA_SERVER} -hf {model.gguf} --port {port} --ctx-size 8192"


def _described(machine: Machine) -> str:
    gpu = machine.gpu
    if gpu is None:
        card = "no GPU"
    elif gpu.maker == "Apple":
        card = "an Apple GPU that shares it"
    else:
        card = f"{gpu.name} ({gpu.memory / _GB:.1f} GB)" if gpu.memory else f"{gpu.name} (memory unknown)"
    count = f"{machine.cores} core{'' if machine.cores == 1 else 's'}"
    return f"{count}, {machine.memory / _GB:.1f} GB of memory ({machine.free / _GB:.1f} free), {card}"


def _present(servers: Sequence[Running]) -> Iterator[str]:
    from calomel.infer.extras import has_engine

    yield "llama.cpp inside (extra llama)" if find_spec("xllamacpp") else "no llama.cpp inside (extra llama)"
    yield "Calomel's own engine (extra engine)" if has_engine() else "no engine of Calomel's own (extra engine)"
    yield ", ".join(f"{each.title} at {each.url}" for each in servers) or "no model server at the usual ports"


def _disk() -> tuple[Path, int]:
    """The models folder, and the bytes that are free there."""
    from calomel.weights.folders import models_folder

    place = models_folder()
    there = next(each for each in (place, *place.parents) if each.exists())
    return place, shutil.disk_usage(there).free


_MACHINES: Final = ("your machine", "for", "model", "disk, memory", "licence", "command", "what is known")
_NANO: Final = ("completions, next edits by rules", "`nano`, built in", "13 MB, 1.0 GB", "Apache-2.0", "none")


def machines_table(table: TableForm = markdown) -> str:
    """Every kind of machine, what to run there, how to get it, and what is known of it."""
    return table(_MACHINES, (cells for row in ROWS for cells in _cells(row)))


def _cells(row: Row) -> Iterator[Sequence[str]]:
    if row.text is None or row.edits is None:
        yield row.machine, *_NANO, "measured here: [scores](comparison.md#scores)"
        return
    pairs = [("completions", row.text), ("next edits", row.edits)]
    if row.text == row.edits:
        pairs = [("completions, next edits", row.text)]
    for number, (aim, model) in enumerate(pairs):
        size = f"{model.disk:.1f} GB, {model.memory:.1f} GB" if model.gguf else "none"
        only = row.holds_both() and aim == "next edits"
        way = fetched(model, row.kind) + _EDITS * only
        if row.kind in {"hosted", "gpu"}:
            way = _HOSTED if row.kind == "hosted" else served(model, 8081 if only else 8080)
        yield "" if number else row.machine, aim, model.title, size, model.licence, f"`{way}`", model.figure
