"""The rooms behind this door: workspace, context and suggestions of one editor, furnished from the settings."""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Final

from calomel.context.budget import EstimateCounter, ExactCounter
from calomel.context.builder import ContextBuilder
from calomel.lsp.notices import ModelLink
from calomel.lsp.offers import Outcomes
from calomel.prompts.tokenizer import Tokenizer, TokenizerError
from calomel.suggest.completer import ModelInfo
from calomel.suggest.suggester import Suggester
from calomel.workspace.documents import Encoding
from calomel.workspace.privacy import Privacy
from calomel.workspace.related import Related
from calomel.workspace.settings import Settings
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Workspace

KEPT: Final = 65_536


class Figures:
    """Handling times of changes: from the body's bytes to the documents and all who listen being up to date."""

    def __init__(self) -> None:
        self._seconds = array("d")
        self._count = 0

    def note(self, seconds: float) -> None:
        """One change was handled."""
        if len(self._seconds) < KEPT:
            self._seconds.append(seconds)
        else:
            self._seconds[self._count % KEPT] = seconds
        self._count += 1

    def report(self) -> dict[str, float | int | None]:
        """Counts, milliseconds and MiB."""
        ordered = sorted(self._seconds)

        def milliseconds(share: float) -> float | None:
            return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 4) if ordered else None

        return {
            "changes": self._count,
            "change_p50_ms": milliseconds(0.5),
            "change_p99_ms": milliseconds(0.99),
            "change_max_ms": milliseconds(1.0),
            "resident_mib": _resident_mib(),
        }


def _resident_mib() -> float | None:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmRSS:")), None)
    return None if line is None else round(int(line.split()[1]) / 1024, 1)


LOG: Final = logging.getLogger(__name__)

# While no model has said its own.
DEFAULT_CONTEXT: Final = 2048


class Rooms:
    """Makes them, and hands changed settings on to each."""

    def __init__(
        self,
        settings: Settings,
        folders: tuple[Path, ...],
        encoding: Encoding,
        model: ModelLink,
        clock: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        """`say` is called from other threads, with sentences for the user."""
        self._settings = settings
        self._model = model
        self._has_read = False
        self._privacy = Privacy(folders, settings.privacy)
        self._syntax = SyntaxTrees()
        self._related = Related(self._syntax, self._privacy, clock=clock, message=say)
        self.workspace = Workspace(
            folders, clock, encoding=encoding, privacy=self._privacy, syntax=self._syntax, related=self._related
        )
        self.workspace.listeners += [self._syntax, self._related]
        self.builder = ContextBuilder(EstimateCounter())
        self._outcomes = Outcomes(settings.log, self.workspace.mask, say)
        self.suggester = Suggester(
            self.workspace, self.builder, model, settings.suggest, clock=clock, outcomes=self._outcomes
        )

    def budget(self) -> int:
        """Tokens that a context gets."""
        known = self._model.known
        wanted = self._settings.suggest.context_tokens
        if wanted is None:
            return DEFAULT_CONTEXT if known is None else known.default_context
        return wanted if known is None else min(wanted, known.max_context)

    def apply(self, settings: Settings) -> bool:
        """Take over changed settings; whether they want another server."""
        before, self._settings = self._settings, settings
        if settings.suggest != before.suggest:
            self.suggester.apply_settings(settings.suggest)
        self._outcomes.apply(settings.log)
        if settings.privacy != before.privacy:
            self._privacy.update(self.workspace.folders, settings.privacy)
            # What the old rules let through is kept there.
            self.builder.clear()
        return settings.server != before.server

    async def model_is(self, info: ModelInfo) -> None:
        """Count tokens exactly from now on, when the model's tokenizer lies on this machine."""
        if info.tokenizer is None:
            return
        try:
            tokenizer = await asyncio.to_thread(Tokenizer.from_file, Path(info.tokenizer))
        except TokenizerError:
            LOG.warning("the model's tokenizer cannot be read: tokens are estimated")
        else:
            self.builder.counter = ExactCounter(tokenizer)
            # Parts that were cut by estimates may have half the tokens that there is room for.
            self.builder.clear()

    @property
    def indexes(self) -> bool:
        """Whether there is anything to read, and the user wants it read."""
        return self._settings.workspace.index and bool(self.workspace.folders)

    @property
    def index_status(self) -> dict[str, object]:
        """How far the reading is, and how often it had to begin anew."""
        return {
            "files": len(self._related.index),
            "ready": self._related.indexer.ready,
            "restarts": self._related.indexer.restarts,
        }

    @property
    def reading(self) -> tuple[object, ...]:
        """The settings that decide what is read."""
        return self._settings.workspace, self._settings.privacy

    async def index(self, folders: tuple[Path, ...], report: Callable[[float], None]) -> None:
        """Read the folders in the background, and forget what is not of them; returns when all of them are read."""
        if not self.indexes:
            if not self._has_read:
                return
            folders = ()
        self._has_read = True
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def progress(read: int, found: int) -> None:
            loop.call_soon_threadsafe(report, read / found if found else 1.0)
            if self._related.indexer.ready:
                loop.call_soon_threadsafe(done.set)

        self._related.start(folders, progress, most_files=self._settings.workspace.index_files)
        await done.wait()
        # What was taken while little was known, or of a folder that is gone, stays in the prompt otherwise.
        self.builder.clear()

    def folders_changed(self, folders: tuple[Path, ...]) -> None:
        """The editor has other folders."""
        self._privacy.update(folders, self._settings.privacy)
        self.workspace.set_folders(folders)

    def files_changed(self, paths: tuple[Path, ...]) -> None:
        """The editor says that these files changed."""
        self._related.refresh(paths)

    async def aclose(self) -> None:
        """Settle outcomes, end threads."""
        await self.suggester.aclose()
        # These wait for threads to end.
        await asyncio.gather(asyncio.to_thread(self._outcomes.close), asyncio.to_thread(self._related.stop))
