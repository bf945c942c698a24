"""The models of one editor: one for text at the cursor and, where the settings name another, one for next edits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal, Self

from calomel.infer.client import ModelClient
from calomel.infer.completer import Candidate, CompleteAnswer, CompleteRequest, Kind, ModelInfo, version
from calomel.workspace.settings import BackendSettings

if TYPE_CHECKING:
    from calomel.infer.listener import Listener

State = Literal["loading", "ready", "error"]
_WORST: Final[tuple[State, ...]] = ("ready", "loading", "error")

# What answers for next edits while no model does: it proposes the drafts that it is asked about, and knows nothing.
RULES: Final = ModelInfo("rules", "rules", ("edit",), 32_768, 2048, None, version(), source="fim")


class Models:
    """Asks the model that a question is for. Used from one event loop.

    Args:
        make: a client for the model of these settings, which has not been started.
        server: the settings.

    Attributes:
        text: the client of the model for text at the cursor.
        edits: the client of the other one; None while the same model does both.
    """

    def __init__(self, make: Callable[[BackendSettings], ModelClient], server: BackendSettings) -> None:
        self._make = make
        self._begun = False
        self.server = server
        self.text = make(server)
        self.edits = self._other()
        self.clock, self.sleep = self.text.clock, self.text.sleep

    @classmethod
    def of(cls, client: ModelClient) -> Self:
        """One model for both, of which there is a client already."""
        return cls(lambda _: client, client.server)

    def _other(self) -> ModelClient | None:
        server = self.server.for_edits
        return None if server is None else self._make(server)

    def __iter__(self) -> Iterator[ModelClient]:
        yield self.text
        if self.edits is not None:
            yield self.edits

    def asked(self, kind: Kind) -> ModelClient:
        """The client of the model that answers these questions."""
        return self.edits if kind == "edit" and self.edits is not None else self.text

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """Ask the model that the question is for; without any, the drafts are all there is. Raises CompleterError."""
        client = self.asked(request.kind)
        if request.kind == "edit" and client.state == "error":
            drafts = tuple(Candidate(draft.text, maker=draft.maker) for draft in request.drafts)
            return CompleteAnswer(drafts, model=RULES.id, judged=False)
        return await client.complete(request)

    def start(self) -> None:
        """Connect in the background."""
        self._begun = True
        for client in self:
            client.start()

    async def follow(self, server: BackendSettings) -> None:
        """Move to the models that the settings name now, if there are any yet."""
        before, self.server, self.text.server = self.server, server, server
        other = server.for_edits
        if not self._begun:
            self.edits = self._other()
            return
        if server.for_text != before.for_text:
            await self.text.reconnect()
        if other == before.for_edits:
            return
        if other is not None and self.edits is not None:
            self.edits.server = other
            await self.edits.reconnect()
            return
        left, self.edits = self.edits, self._other()
        if left is not None:
            await left.aclose()
        if self.edits is not None:
            self.edits.start()

    async def switch(self, server: BackendSettings) -> ModelInfo:
        """Move to other models once they answer; the present ones go on until then. Raises CompleterError."""
        before, other = self.server, server.for_edits
        moves = other != before.for_edits
        left, edits = (self.edits, None) if moves else (None, self.edits)
        try:
            if moves and other is not None:
                edits = self._make(other)
                await edits.switch(other)
            if moves and server.for_text == before.for_text:
                info = await self.text.ready()
            else:
                info = await self.text.switch(server)
        except BaseException:
            if moves and edits is not None:
                await edits.aclose()
            raise
        self.server, self.text.server, self.edits = server, server, edits
        if left is not None:
            await left.aclose()
        return info

    async def stand_in(self, server: BackendSettings) -> ModelInfo | None:
        """Have another model answer for each server that is away; None if none is. Raises CompleterError."""
        found = [await client.stand_in(server) for client in self if client.outage.now]
        return found[0] if found else None

    async def reconnect(self) -> None:
        """Look for those again that cannot be used."""
        for client in self:
            if client.info is None:
                await client.reconnect()

    async def aclose(self) -> None:
        """Stop loading and close the connections."""
        for client in self:
            await client.aclose()

    @property
    def state(self) -> State:
        """The worst one."""
        return max((client.state for client in self), key=_WORST.index)

    @property
    def message(self) -> str:
        """What there is to say of each, the worst first."""
        if self.edits is None:
            return self.text.message
        told = [(client.state, client.message.rstrip(".")) for client in self]
        told[1] = (told[1][0], f"For next edits: {told[1][1]}")
        told.sort(key=lambda each: -_WORST.index(each[0]))
        return " ".join(f"{message}." for _, message in told)

    @property
    def listener(self) -> Listener | None:
        """Another user's program at the address of one of them, which the user may confirm."""
        return next((client.listener for client in self if client.listener is not None), None)

    @property
    def outages(self) -> int:
        """How often a server that others started stopped answering."""
        return sum(client.outage.count for client in self)

    @property
    def out(self) -> bool:
        """Whether one is away now."""
        return any(client.outage.now for client in self)
