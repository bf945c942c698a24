"""From the form that a client asks for to the constraint that the engine keeps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from calomel.prompts.grammar import GrammarCompiler, GrammarConstraint, GrammarError, json_form, pattern_form
from calomel.server.errors import InvalidParameterError
from calomel.server.schemas.response_format import ResponseFormat

if TYPE_CHECKING:
    from calomel.server.loading import Filler

# Compiling is bounded by its own budget; this bounds the waiting on a busy machine.
_SECONDS: Final = 5.0


async def constraint_of(filler: Filler, asked: ResponseFormat | None) -> GrammarConstraint | None:
    """What the answer may be; None for any text.

    Raises:
        InvalidParameterError: the schema or pattern is malformed, too large, or uses what is not supported.
    """
    if asked is None or asked.type == "text":
        return None
    try:
        return await asyncio.wait_for(asyncio.to_thread(_compile, filler.grammars, asked), _SECONDS)
    except TimeoutError:
        raise InvalidParameterError("response_format: the schema is too complex", "response_format") from None
    except GrammarError as error:
        raise InvalidParameterError(f"response_format: {error}", "response_format") from None


def _compile(grammars: GrammarCompiler, asked: ResponseFormat) -> GrammarConstraint:
    schema = asked.schema_of()
    return grammars.compile(pattern_form(asked.pattern or "") if schema is None else json_form(schema))
