"""A model between the suggester and a bench, which wants to know all that it was asked and all that it said."""

from __future__ import annotations

from dataclasses import dataclass

from calomel.suggest.completer import CompleteAnswer, Completer, CompleteRequest, ModelInfo


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate as an edit of the document.

    Attributes:
        maker: of the candidate.
        start: where its region begins.
        end: where it ends.
        text: what the region would become.
    """

    maker: str
    start: int
    end: int
    text: str

    def apply(self, document: str) -> str:
        """The document with it."""
        return document[: self.start] + self.text + document[self.end :]


class WatchedCompleter:
    """Answers as another one does, and remembers."""

    def __init__(self, inner: Completer) -> None:
        self.seen: list[tuple[CompleteRequest, CompleteAnswer]] = []
        self._inner = inner

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Answer one question. Raises CompleterError."""
        answer = await self._inner.complete(request)
        self.seen.append((request, answer))
        return answer

    async def info(self) -> ModelInfo:
        """What the model can do."""
        return await self._inner.info()

    async def aclose(self) -> None:
        """Nothing: the model belongs to who made it."""

    def proposals(self, document: str) -> tuple[Proposal, ...]:
        """What was proposed for edits of a document, question by question, best first; leaving all as it is is none."""
        found: list[Proposal] = []
        for request, answer in self.seen:
            region = request.parts.region
            if region is None:
                continue
            window = request.parts.prefix + region.text + request.parts.suffix
            at = document.find(window)
            if at < 0:
                continue
            start = at + len(request.parts.prefix)
            end = start + len(region.text)
            for candidate in answer.candidates:
                text = candidate.text
                if region.text.endswith("\n") and text and not text.endswith("\n"):
                    text += "\n"
                if text != region.text and candidate.finish_reason == "stop":
                    found.append(Proposal(candidate.maker, start, end, text))
        return tuple(found)
