"""What an editor would send while the log plays: documents and their changes, in its own positions and order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from calomel.replay.events import Accepted, Changed, Closed, Event, Focused, Opened, Selected, apply_edits
from calomel.workspace.documents import Document, RangeChange
from calomel.workspace.privacy import Privacy
from calomel.workspace.related import Related
from calomel.workspace.settings import PrivacySettings
from calomel.workspace.syntax import SyntaxTrees
from calomel.workspace.workspace import Workspace

# Does not exist: path rules apply in it, and nothing on this machine is read.
FOLDER: Final = Path("/calomel-replay")
_INDEXING_SECONDS: Final = 600.0
# An editor sends a change's selection with it, or right after it.
_SAME_KEYSTROKE: Final = 0.05


class Editor:
    """The editor's side of one log, in front of a workspace as the language server has it.

    Attributes:
        texts: of open documents, by the names that the log uses; kept apart from the workspace's, to compare.
        focused: the document that the person looks at; None until the log says.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        project: Mapping[str, str] | None = None,
        *,
        parsing: Callable[[], float] | None = None,
    ) -> None:
        """A workspace with nothing open.

        Args:
            clock: of the log.
            project: files to put on the disk, by path, and to index before the first event.
            parsing: the clock that bounds the parser; None for the log's.
        """
        self._written = None if project is None else TemporaryDirectory(prefix="calomel-replay-")
        self._folder = FOLDER if self._written is None else Path(self._written.name).resolve()
        for name, text in (project or {}).items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
        privacy = Privacy((self._folder,), PrivacySettings())
        syntax = SyntaxTrees(parsing or clock)
        self._related = Related(syntax, privacy, clock=clock, watch=False)
        self.workspace = Workspace((self._folder,), clock, privacy=privacy, syntax=syntax, related=self._related)
        self.workspace.listeners += [syntax, self._related]
        if project is not None:
            self._related.start((self._folder,))
            self._related.indexer.wait(_INDEXING_SECONDS)
        self.texts: dict[str, str] = {}
        self.focused: str | None = None
        self._versions: dict[str, int] = {}

    def close(self) -> None:
        """End the indexing, and remove what was written."""
        self._related.stop()
        if self._written is not None:
            self._written.cleanup()

    def document(self, name: str) -> Document | None:
        """The workspace's document of this name."""
        return self.workspace.documents.get(self._uri(name))

    def send(self, event: Event) -> None:
        """Report an event to the workspace, as far as an editor would."""
        match event:
            case Opened():
                self.texts[event.document] = event.text
                uri, version = self._uri(event.document), self._next_version(event.document)
                self.workspace.open(uri, event.language_id, version, event.text)
            case Changed() if event.document in self.texts:
                self._change(event)
            case Focused():
                self.focused = event.document
                self.workspace.focus(self._uri(event.document))
            case Closed():
                self.texts.pop(event.document, None)
                self.workspace.close(self._uri(event.document))
            case Accepted() if event.document in self.texts:
                after = apply_edits(self.texts[event.document], event.edits)
                self.workspace.expect_prediction(self._uri(event.document), after)
            case _:
                pass

    def agrees(self) -> bool:
        """Whether the workspace's texts equal the log's."""
        documents = {name: self.document(name) for name in self.texts}
        return len(self.workspace.documents) == len(self.texts) and all(
            document is not None and document.text == self.texts[name] for name, document in documents.items()
        )

    def _change(self, event: Changed) -> None:
        document = self.document(event.document)
        if document is None:
            return
        # From last to first, as editors do: so every position refers to the text before all edits.
        changes = [
            RangeChange(
                document.position_at(edit.start),
                document.position_at(edit.end),
                edit.text,
            )
            for edit in reversed(event.edits)
        ]
        self.texts[event.document] = apply_edits(self.texts[event.document], event.edits)
        self.workspace.change(document.uri, self._next_version(event.document), changes)

    def _uri(self, name: str) -> str:
        return (self._folder / name).as_uri()

    def _next_version(self, name: str) -> int:
        version = self._versions[name] = self._versions.get(name, 0) + 1
        return version


def cursor_after(event: Changed, following: Sequence[Event], position: int) -> int:
    """Where the cursor is after a change: where the log says, or after the text written last.

    Args:
        event: the change.
        following: all events.
        position: of the first event after the change.
    """
    for number in range(position, len(following)):
        each = following[number]
        if each.time - event.time > _SAME_KEYSTROKE or isinstance(each, Changed):
            break
        if isinstance(each, Selected) and each.document == event.document:
            return each.offset
    shift = sum(len(edit.text) - (edit.end - edit.start) for edit in event.edits[:-1])
    return event.edits[-1].start + shift + len(event.edits[-1].text)
