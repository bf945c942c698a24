"""One editor's workspace, context, suggestions and outcomes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from calomel.context.builder import ContextBuilder
from calomel.context.window import EstimateCounter, ExactCounter
from calomel.infer.completer import DEFAULT_CONTEXT, version
from calomel.infer.door import Door
from calomel.infer.models import Models
from calomel.lsp.client import Client
from calomel.prompts.tokenizer import Tokenizer, TokenizerError
from calomel.selectivity.record import Records
from calomel.suggest.judging import records_path
from calomel.suggest.outcome_log import OutcomeLog, outcome_log_path
from calomel.suggest.suggester import Suggester
from calomel.workspace.privacy import Privacy
from calomel.workspace.related import Related
from calomel.workspace.settings import Settings
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Workspace

LOG: Final = logging.getLogger(__name__)


class Services:
    """Workspace, context and suggestions of one editor, set up from the settings."""

    def __init__(
        self,
        settings: Settings,
        client: Client,
        models: Models,
        say: Callable[[str], None],
    ) -> None:
        """`say` is called from other threads, with messages for the user."""
        self.settings = settings
        self.models = models
        self._has_read = False
        self._privacy = Privacy(client.folders, settings.privacy)
        self._syntax = SyntaxTrees()
        self._related = Related(self._syntax, self._privacy, clock=models.clock, message=say)
        self.workspace = Workspace(
            client.folders, models.clock, privacy=self._privacy, syntax=self._syntax, related=self._related
        )
        self.workspace.listeners += [self._syntax, self._related]
        self.door = Door(self.workspace)
        self.builder = ContextBuilder(EstimateCounter())
        self._outcomes = OutcomeLog(outcome_log_path(), version=version(), warn=say)
        self._outcomes.wanted = settings.log.outcomes
        self.suggester = Suggester(
            self.workspace, models, settings.suggest, builder=self.builder, outcomes=self._outcomes
        )
        # What is not to be noted is learned from in this session alone.
        self.suggester.filter.records = Records(records_path() if settings.log.outcomes else None)
        if client.inline_completion:
            self.suggester.shows_text()

    def budget(self) -> int:
        """How many tokens a context gets."""
        info = self.models.text.info
        wanted = self.settings.suggest.context_tokens
        if wanted is None:
            return DEFAULT_CONTEXT if info is None else info.default_context
        return wanted if info is None else min(wanted, info.max_context)

    def apply(self, settings: Settings) -> None:
        """Apply changed settings."""
        before, self.settings = self.settings, settings
        if settings.suggest != before.suggest:
            self.suggester.apply_settings(settings.suggest)
        self._outcomes.wanted = settings.log.outcomes
        if settings.privacy != before.privacy:
            self._privacy.update(self.workspace.folders, settings.privacy)
            # It still holds what the old rules let through.
            self.builder.clear()

    async def model_is(self) -> None:
        """Forget what another one answered, and count tokens exactly if its tokenizer is on this machine."""
        info = self.models.text.info
        self.suggester.forget_answers()
        self.suggester.reading.again()
        counter: EstimateCounter | ExactCounter = EstimateCounter()
        if info is not None and info.tokenizer is not None:
            try:
                counter = ExactCounter(await asyncio.to_thread(Tokenizer.from_file, Path(info.tokenizer)))
            except TokenizerError:
                LOG.warning("cannot read the model's tokenizer: Calomel estimates tokens")
        if isinstance(counter, ExactCounter) or isinstance(self.builder.counter, ExactCounter):
            self.builder.counter = counter
            # Parts that were cut by estimates may use only half of their tokens.
            self.builder.clear()
            self.suggester.reading.again()

    @property
    def indexes(self) -> bool:
        """Whether there are folders to index, and the user wants it."""
        return self.settings.workspace.index and bool(self.workspace.folders)

    @property
    def index_status(self) -> dict[str, object]:
        """How far the index is, and how often indexing restarted."""
        return {
            "files": len(self._related.index),
            "ready": self._related.indexer.ready,
            "restarts": self._related.indexer.restarts,
        }

    async def index(self, report: Callable[[float, str], None]) -> None:
        """Index the folders in the background, and forget other files; returns when all of them are read.

        `report` gets the share of the work that is done, and what is being done.
        """
        if not self.indexes and not self._has_read:
            return
        folders = tuple(self.workspace.folders) if self.indexes else ()
        self._has_read = True
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def progress(read: int, total: int) -> None:
            share = read / total if total else 1.0
            loop.call_soon_threadsafe(
                report, share, f"{read:,} of {total:,} files" if read else f"{total:,} files found"
            )
            if self._related.indexer.ready:
                loop.call_soon_threadsafe(done.set)

        self._related.start(folders, progress, most_files=self.settings.workspace.index_files)
        await done.wait()
        # Otherwise excerpts chosen from a partial index, or from a removed folder, would stay in the prompt.
        self.builder.renew()
        self.suggester.reading.again()

    def folders_changed(self, folders: tuple[Path, ...]) -> None:
        """The editor's folders changed."""
        self._privacy.update(folders, self.settings.privacy)
        self.workspace.set_folders(folders)

    async def aclose(self) -> None:
        """Settle outcomes and end threads."""
        await self.suggester.aclose()
        # These wait for threads to end, or for the disk.
        await asyncio.gather(
            *(asyncio.to_thread(work) for work in (self._outcomes.close, self._related.stop, self._save))
        )

    def _save(self) -> None:
        try:
            self.suggester.filter.records.save()
        except OSError as error:
            LOG.warning("cannot store the outcomes of suggestions: %s", error)
