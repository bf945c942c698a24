"""Fetches a GGUF file that the user chose in an editor: `calomel models fetch` as a child that tells its progress."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from importlib.util import find_spec
from typing import Any, Final, cast

from calomel.infer.completer import CompleterError
from calomel.infer.extras import installing
from calomel.lsp.protocol import Editor, Progress
from calomel.weights.folders import NAME, REPOSITORY

_GB: Final = 1e9


def repository_of(wanted: object) -> str | None:
    """Owner and name of `OWNER/NAME:QUANT`, by which settings name it once it is here; None for anything else."""
    repository, _, quant = wanted.partition(":") if isinstance(wanted, str) else ("", "", "")
    return repository if REPOSITORY.fullmatch(repository) and NAME.fullmatch(quant) else None


async def fetch(editor: Editor, wanted: str) -> None:
    """Fetch `OWNER/NAME:QUANT` into the models folder, if the user agrees to its size and licence.

    Cancelling ends the download; the next one continues it. Raises CompleterError.
    """
    if find_spec("xllamacpp") is None:
        how = installing("'calomel[llama]'")
        raise CompleterError("refused", f"the extra llama, which runs {wanted}, is missing: run {how}")
    name, size, pipe = wanted, 1, asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "calomel.cli", "models", "fetch", wanted, "--lines", stdin=pipe, stdout=pipe, stderr=pipe
    )
    progress = Progress(editor, "Calomel: download", child.terminate)
    try:
        async for line in cast(asyncio.StreamReader, child.stdout):
            told = json.loads(line)
            if "file" in told:
                name, size = told["file"], told["size"]
                await _agreed(editor, told)
                cast(asyncio.StreamWriter, child.stdin).write(b"\n")
                await progress.begin(name, measured=True)
            else:
                progress.report(told["done"] / size, f"{name}: {told['done'] / _GB:.2f} of {size / _GB:.2f} GB")
        errors = (await child.communicate())[1].decode(errors="replace")
    finally:
        if child.returncode is None:
            child.kill()
        progress.end()
    if child.returncode:
        said = re.sub(r"^(error|try): ", "", errors.strip(), flags=re.MULTILINE).replace("\n", ": ")
        raise CompleterError("refused", said or f"the download of {name} was stopped; choose it again to continue")


async def _agreed(editor: Editor, told: dict[str, Any]) -> None:
    """Raises CompleterError unless the user agrees to the size and the licence."""
    question = (
        f"Download {told['file']} from the Hugging Face hub ({told['size'] / _GB:.2f} GB, licence {told['licence']})? "
        f"{told['free'] / _GB:.0f} GB of disk are free."
    )
    if await editor.asks(question, "Download") is None:
        raise CompleterError("refused", f"{told['file']} was not downloaded")
