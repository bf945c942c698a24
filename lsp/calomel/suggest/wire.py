"""JSON of what the editor's side and an engine say to each other over `POST /calomel/v1/complete`, both ways.

Nothing here needs a library: the editor's side starts in milliseconds. Decoding checks types and bounds, names the
offending field and never repeats what stands there. Fields that this version does not know are ignored; a message of
another protocol version is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, get_args

from calomel.prompts.parts import EditRegion, Excerpt, Hunk, PromptParts, RegionBounds
from calomel.suggest.completer import (
    CANVAS,
    PROTOCOL_VERSION,
    Candidate,
    CompleteAnswer,
    CompleteRequest,
    Draft,
    FinishReason,
    Kind,
    ModelInfo,
    Timings,
)
from calomel.suggest.fields import FieldError, Fields, as_object, as_text, document, finite

COMPLETE_PATH: Final = "/calomel/v1/complete"
INFO_PATH: Final = "/calomel/v1/info"

# The longest answer of the published API.
MAX_TOKENS: Final = 8192
# More positions than any model that these prompts are made for; a model's own bound is applied behind it.
MAX_CONTEXT: Final = 1 << 20
# The same as in the published API's route: what matching costs nothing for.
MAX_STOPS: Final = 16
MAX_STOP_CHARACTERS: Final = 256
# Each is read by the model before anything is answered; more than a handful would cost more than they are worth.
MAX_DRAFTS: Final = 16
# More than the largest region has.
MAX_DRAFT_CHARACTERS: Final = 8192
# An excerpt has a heading of some ten tokens, so more of them would be headings alone; the body's size bounds the rest.
MAX_EXCERPTS: Final = 1024
# Those of a prompt of 32K tokens are the same from one keystroke to the next.
_REMEMBERED: Final = 256
# PATH_MAX of Linux.
MAX_PATH_CHARACTERS: Final = 4096
# Nobody waits ten minutes for a suggestion.
MAX_DEADLINE: Final = 600.0
# uinteger of the Language Server Protocol.
_MAX_LINE: Final = 2**31 - 1
_MAX_COUNT: Final = 2**53
_MAX_CANDIDATES: Final = 64
_MAX_REGION_LINES: Final = 1000
_MAX_NAME_CHARACTERS: Final = 256
# The smallest probability of float32 has a logarithm of -104. JSON has no infinity.
_LEAST_LOG_PROB: Final = -1e4

_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_FINISH_REASONS: Final[tuple[FinishReason, ...]] = get_args(FinishReason)


class ProtocolError(FieldError):
    """The other side speaks another version of this protocol."""

    def __init__(self) -> None:
        super().__init__("protocol", f"this side speaks version {PROTOCOL_VERSION}; update the older of the two")


def encode_request(request: CompleteRequest) -> bytes:
    """A request as a JSON document. Raises FieldError where a text is not valid Unicode."""
    parts = request.parts
    others = {
        "edits": [_hunk(hunk) for hunk in parts.edits],
        "path": parts.path,
        "prefix": parts.prefix,
        "suffix": parts.suffix,
        "region": None if parts.region is None else {"text": parts.region.text, "cursor": parts.region.cursor},
    }
    question = {
        "protocol": PROTOCOL_VERSION,
        "kind": request.kind,
        "max_tokens": request.max_tokens,
        "min_tokens": request.min_tokens,
        "stop": list(request.stop),
        "max_context": request.max_context,
        "deadline": request.deadline,
        "background": request.background,
        "drafts": [{"text": draft.text, "maker": draft.maker} for draft in request.drafts],
        "own": request.own,
    }
    related, far = (",".join(map(_excerpt, excerpts)) for excerpts in (parts.related, parts.far))
    inner = f'{{"related":[{related}],"far":[{far}],{_json(others)[1:]}'
    return _bytes(f'{_json(question)[:-1]},"parts":{inner}}}')


def decode_request(data: bytes | str) -> CompleteRequest:
    """The request in a JSON document. Raises FieldError, ProtocolError."""
    fields = _open(data)
    parts = fields.inner("parts")
    region = parts.optional_inner("region")
    request = CompleteRequest(
        kind=fields.choice("kind", _KINDS),
        parts=PromptParts(
            related=parts.each("related", _read_excerpt, most=MAX_EXCERPTS),
            far=parts.each("far", _read_excerpt, most=MAX_EXCERPTS),
            edits=parts.each("edits", _read_hunk, most=MAX_EXCERPTS),
            path=parts.optional_text("path", longest=MAX_PATH_CHARACTERS),
            prefix=parts.text("prefix", ""),
            suffix=parts.text("suffix", ""),
            region=None if region is None else _read_region(region),
        ),
        max_tokens=fields.integer("max_tokens", 64, low=1, high=MAX_TOKENS),
        min_tokens=fields.integer("min_tokens", 0, low=0, high=MAX_TOKENS),
        stop=fields.each("stop", _read_stop, most=MAX_STOPS),
        max_context=fields.integer("max_context", 2048, low=1, high=MAX_CONTEXT),
        deadline=fields.optional_number("deadline", low=0, high=MAX_DEADLINE),
        background=fields.truth("background", default=False),
        drafts=fields.each("drafts", _read_draft, most=MAX_DRAFTS),
        own=fields.truth("own", default=True),
    )
    _check_together(request)
    return request


def check_request(request: CompleteRequest) -> None:
    """Refuse, with the same words, what `decode_request` would refuse. Raises FieldError."""
    decode_request(encode_request(request))


def encode_answer(answer: CompleteAnswer) -> bytes:
    """An answer as a JSON document."""
    return _dump(
        {
            "candidates": [_candidate(candidate) for candidate in answer.candidates],
            "reason": answer.reason,
            "context_tokens": answer.context_tokens,
            "cached_tokens": answer.cached_tokens,
            "model": answer.model,
            "timings": {"queued": answer.timings.queued, "total": answer.timings.total},
            **({} if answer.judged else {"judged": False}),
        }
    )


def decode_answer(data: bytes | str) -> CompleteAnswer:
    """The answer in a JSON document. Raises FieldError, ProtocolError."""
    fields = _open(data)
    timings = fields.inner("timings")
    return CompleteAnswer(
        candidates=fields.each("candidates", _read_candidate, most=_MAX_CANDIDATES),
        reason=fields.optional_text("reason", longest=_MAX_NAME_CHARACTERS),
        context_tokens=fields.integer("context_tokens", 0, low=0, high=_MAX_COUNT),
        cached_tokens=fields.integer("cached_tokens", 0, low=0, high=_MAX_COUNT),
        model=fields.text("model", "", longest=_MAX_NAME_CHARACTERS),
        timings=Timings(queued=timings.number("queued", 0.0), total=timings.number("total", 0.0)),
        judged=fields.truth("judged", default=True),
    )


def encode_info(info: ModelInfo) -> bytes:
    """What a model can do, as a JSON document."""
    return _dump(
        {
            "id": info.id,
            "weights": info.weights,
            "kinds": list(info.kinds),
            "max_context": info.max_context,
            "default_context": info.default_context,
            "tokenizer": info.tokenizer,
            "version": info.version,
            "region": {
                "above": info.region.above,
                "below": info.region.below,
                "characters": info.region.characters,
                "context": info.region.context,
            },
        }
    )


def decode_info(data: bytes | str) -> ModelInfo:
    """What a model can do, from a JSON document. Kinds that this version does not know are left out.

    Raises FieldError, ProtocolError.
    """
    fields = _open(data)
    names = fields.each("kinds", _read_name, most=_MAX_CANDIDATES)
    return ModelInfo(
        id=fields.text("id", longest=_MAX_NAME_CHARACTERS),
        weights=fields.text("weights", longest=_MAX_NAME_CHARACTERS),
        kinds=tuple(kind for kind in _KINDS if kind in names),
        max_context=fields.integer("max_context", low=1, high=MAX_CONTEXT),
        default_context=fields.integer("default_context", low=1, high=MAX_CONTEXT),
        tokenizer=fields.optional_text("tokenizer", longest=MAX_PATH_CHARACTERS),
        version=fields.text("version", longest=_MAX_NAME_CHARACTERS),
        region=_read_bounds(fields.optional_inner("region")),
    )


def _dump(values: Mapping[str, Any]) -> bytes:
    return _bytes(_json({"protocol": PROTOCOL_VERSION, **values}))


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Its message and its attributes would carry the text along.
        raise FieldError("", "a text is not valid Unicode") from None


def _open(data: bytes | str) -> Fields:
    fields = Fields(document(data))
    if fields.integer("protocol", low=0, high=_MAX_COUNT) != PROTOCOL_VERSION:
        raise ProtocolError
    return fields


@lru_cache(maxsize=_REMEMBERED)
def _excerpt(excerpt: Excerpt) -> str:
    return _json({"path": excerpt.path, "start_line": excerpt.start_line, "text": excerpt.text})


def _read_excerpt(value: Any, path: str) -> Excerpt:
    fields = as_object(value, path)
    return Excerpt(
        path=fields.text("path", longest=MAX_PATH_CHARACTERS),
        start_line=fields.integer("start_line", low=0, high=_MAX_LINE),
        text=fields.text("text"),
    )


def _hunk(hunk: Hunk) -> dict[str, Any]:
    return {
        "path": hunk.path,
        "start_line": hunk.start_line,
        "before": hunk.before,
        "after": hunk.after,
        "predicted": hunk.predicted,
    }


def _read_hunk(value: Any, path: str) -> Hunk:
    fields = as_object(value, path)
    return Hunk(
        path=fields.text("path", longest=MAX_PATH_CHARACTERS),
        start_line=fields.integer("start_line", low=0, high=_MAX_LINE),
        before=fields.text("before"),
        after=fields.text("after"),
        predicted=fields.truth("predicted", default=False),
    )


def _read_region(fields: Fields) -> EditRegion:
    text = fields.text("text")
    apart = fields.values.get("cursor") is None
    return EditRegion(text=text, cursor=None if apart else fields.integer("cursor", low=0, high=len(text)))


def _read_bounds(fields: Fields | None) -> RegionBounds:
    if fields is None:
        return RegionBounds()
    return RegionBounds(
        above=fields.integer("above", low=0, high=_MAX_REGION_LINES),
        below=fields.integer("below", low=0, high=_MAX_REGION_LINES),
        characters=fields.integer("characters", low=1, high=_MAX_COUNT),
        context=fields.integer("context", 0, low=0, high=MAX_CONTEXT),
    )


def _check_together(request: CompleteRequest) -> None:
    if request.min_tokens > request.max_tokens:
        raise FieldError("min_tokens", "must not be above max_tokens")
    if request.kind == "edit" and request.parts.region is None:
        raise FieldError("parts.region", "is missing")
    if request.kind == "fill" and request.parts.region is not None:
        raise FieldError("parts.region", "must be null: a fill rewrites nothing")


def _read_stop(value: Any, path: str) -> str:
    return as_text(value, path, shortest=1, longest=MAX_STOP_CHARACTERS)


def _read_draft(value: Any, path: str) -> Draft:
    fields = as_object(value, path)
    return Draft(
        text=fields.text("text", longest=MAX_DRAFT_CHARACTERS),
        maker=fields.text("maker", shortest=1, longest=_MAX_NAME_CHARACTERS),
    )


def _read_name(value: Any, path: str) -> str:
    return as_text(value, path, longest=_MAX_NAME_CHARACTERS)


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "text": candidate.text,
        "log_probs": [_log_prob(value) for value in candidate.log_probs],
        "entropies": list(candidate.entropies),
        "end_log_prob": None if candidate.end_log_prob is None else _log_prob(candidate.end_log_prob),
        "finish_reason": candidate.finish_reason,
        "steps": candidate.steps,
        "length_scores": [list(score) for score in candidate.length_scores],
        "maker": candidate.maker,
        "log_prob": candidate.log_prob,
        "keep_log_prob": candidate.keep_log_prob,
    }


def _read_candidate(value: Any, path: str) -> Candidate:
    fields = as_object(value, path)
    return Candidate(
        text=fields.text("text"),
        log_probs=fields.each("log_probs", finite, most=MAX_TOKENS),
        entropies=fields.each("entropies", finite, most=MAX_TOKENS),
        end_log_prob=fields.optional_number("end_log_prob"),
        finish_reason=fields.choice("finish_reason", _FINISH_REASONS),
        steps=fields.integer("steps", 0, low=0, high=_MAX_COUNT),
        length_scores=fields.each("length_scores", _read_length_score, most=MAX_TOKENS),
        maker=fields.text("maker", CANVAS, longest=_MAX_NAME_CHARACTERS),
        log_prob=fields.optional_number("log_prob"),
        keep_log_prob=fields.optional_number("keep_log_prob"),
    )


def _log_prob(value: float) -> float:
    return max(value, _LEAST_LOG_PROB)


def _read_length_score(value: Any, path: str) -> tuple[int, float]:
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 (a length and its score)
        raise FieldError(path, "must be a pair of a length and a score")
    length = Fields({"0": value[0]}, path).integer("0", low=0, high=MAX_TOKENS)
    return length, finite(value[1], f"{path}.1")
