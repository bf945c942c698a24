"""What is asked of a chat model, and which form its answer has to have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from calomel.prompts.chat import Function, Message, calls_form, json_or_calls_form, text_or_calls_form
from calomel.prompts.grammar import AnswerForm, embedded, json_form, pattern_form

if TYPE_CHECKING:
    from calomel.engine import Priority, SamplingParams

Effort = Literal["instant", "low", "medium", "high"]
Calling = Literal["auto", "required", "none"]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A conversation and how to go on with it.

    Attributes:
        messages: so far.
        functions: that the model may call.
        calling: whether it may, must or must not; `named` is the one that it must.
        parallel: whether it may call several at once.
        schema: of the JSON that it answers; None for text.
        pattern: regular expression that the answer matches; None for any text.
        max_tokens: bound on the answer; the model's positions bound it too.
        stop: the answer ends before the first of these strings.
        sampling: None for the most probable tokens.
        effort: how often the model looks at its text before it is settled.
        priority: None for interactive.
        deadline: seconds from now after which what is known is the answer; None for no bound.
    """

    messages: tuple[Message, ...]
    functions: tuple[Function, ...] = ()
    calling: Calling = "auto"
    named: str | None = None
    parallel: bool = True
    schema: Mapping[str, Any] | None = None
    pattern: str | None = None
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    sampling: SamplingParams | None = None
    effort: Effort = "medium"
    priority: Priority | None = None
    deadline: float | None = None

    @property
    def offered(self) -> tuple[Function, ...]:
        """The functions that the model is told of."""
        return () if self.calling == "none" else self.functions

    @property
    def callable(self) -> tuple[Function, ...]:
        """The functions whose calls are calls."""
        return tuple(each for each in self.offered if self.named in {None, each.name})

    @property
    def free(self) -> bool:
        """Whether the answer may have any text in it, so that the model may think aloud first."""
        must_call = bool(self.callable) and (self.calling == "required" or self.named is not None)
        return self.schema is None and self.pattern is None and not must_call


def form_of(request: ChatRequest) -> AnswerForm | None:
    """The form of the answer; None for any text.

    Raises:
        GrammarError: a schema or pattern is too large, too deep, or refers to something outside of itself.
    """
    functions = request.callable
    if functions and (request.calling == "required" or request.named is not None):
        return calls_form(functions, most=None if request.parallel and request.named is None else 1)
    if request.schema is not None:
        return json_or_calls_form(embedded(request.schema), functions) if functions else json_form(request.schema)
    if request.pattern is not None:
        return pattern_form(request.pattern)
    strict = any(function.strict for function in functions)
    return text_or_calls_form(functions) if strict else None
