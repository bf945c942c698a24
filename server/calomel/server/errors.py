"""What the server refuses, and how: one tree of errors in the published shape.

The shape is `{"error": {"message", "type", "param", "code"}}` (ErrorResponse of the published OpenAPI document). No
message repeats what the client sent: neither the user's text nor a token can come back through an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from calomel.engine import errors
from calomel.infer.completer import CompleterError

if TYPE_CHECKING:
    from fastapi.exceptions import RequestValidationError

# Seconds until a refused client may retry: about as long as a full queue of short fills takes on a laptop.
RETRY_OVERLOAD = 1
# Opening a small checkpoint takes a few seconds, most of them the import of torch.
RETRY_LOADING = 2
# A supervisor restarts the server, which takes as long as opening the model.
RETRY_RESTART = 5
# Wrong tokens are counted per minute.
RETRY_GUESS = 60


class ApiError(Exception):
    """A request that gets an error response.

    Attributes:
        status: HTTP status code.
        type: category, one of the published ones.
        code: machine-readable reason.
        param: name of the offending field, if there is one.
        retry_after: seconds, sent as `Retry-After`.
        challenge: the `WWW-Authenticate` header of a 401.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: ClassVar[str] = "server_error"
    retry_after: int | None = None
    message: ClassVar[str] = "The server had an error while processing your request."
    challenge: ClassVar[str] = "Bearer"

    def __init__(self, message: str | None = None, param: str | None = None, *, retry_after: int | None = None) -> None:
        super().__init__(message or self.message)
        self.param = param
        if retry_after is not None:
            self.retry_after = retry_after

    def response(self, **more: Any) -> JSONResponse:
        """This error as an HTTP response; `more` are additional fields of its body."""
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        if self.status == 401:  # noqa: PLR2004 (RFC 9110, section 11.6.1)
            headers["www-authenticate"] = self.challenge
        return JSONResponse({**more, **self.body()}, self.status, headers)

    def body(self) -> dict[str, Any]:
        """This error in the published shape."""
        return shape(str(self), self.type, self.code, self.param)


class RefusedError(ApiError):
    """The request cannot be served as it is."""

    status = 400
    type = "invalid_request_error"


class UnavailableError(ApiError):
    """The server cannot serve the request now, but can later."""

    status = 503


class InvalidParameterError(RefusedError):
    """A field of the request is missing or out of range."""

    code = "invalid_parameter"
    message = "The request is invalid."


class TooManyValuesError(RefusedError):
    """A body with tens of thousands of numbers, lists or objects, which no client sends."""

    status = 413
    code = "too_many_values"
    message = "The body has too many values. Send less at once."


class ContextLengthError(RefusedError):
    """Prompt and answer together exceed the model's positions."""

    code = "context_length_exceeded"
    message = (
        "You exceeded the maximum context length for this model. Please reduce the length of the prompt or completion."
    )


class InvalidTokenError(ApiError):
    """The token is missing or wrong."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"
    message = "Incorrect API key provided"


class LoginError(InvalidTokenError):
    """The same for the status page: the browser asks its user for the token, as a password without a name."""

    challenge = 'Basic realm="Calomel", charset="UTF-8"'


class GuessingError(ApiError):
    """Too many wrong tokens from one address."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_reached"
    retry_after = RETRY_GUESS
    message = "Too many requests with a wrong token. Please wait, and check the token."


class OriginError(ApiError):
    """A web page of another address sent the request."""

    status = 403
    type = "permission_error"
    code = "origin_not_allowed"
    message = "This web page may not use the server; its administrator can allow it."


class MediaTypeError(RefusedError):
    """The body is not declared as JSON. Browsers send such bodies across origins without a preflight request."""

    status = 415
    code = "unsupported_media_type"
    message = "Send the body as JSON, with the header 'content-type: application/json'."


class OverloadedError(UnavailableError):
    """The maximum number of requests is running or waiting."""

    code = "engine_overloaded"
    retry_after = RETRY_OVERLOAD
    message = "Engine overloaded: too many requests are waiting. Please try again shortly."


class RateLimitError(ApiError):
    """One client asks too often, or for too much at once; others are still served."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_reached"
    retry_after = RETRY_OVERLOAD
    message = "Rate limit reached for requests of this client. Please try again shortly."


class DrainingError(UnavailableError):
    """The server is shutting down; it finishes the requests in progress."""

    code = "server_draining"
    retry_after = RETRY_RESTART
    message = "The server is shutting down. Please try again shortly."


class ModelLoadingError(UnavailableError):
    """The model is still being opened."""

    code = "model_loading"
    retry_after = RETRY_LOADING
    message = "The model is still loading. Please try again shortly."


class ModelFailedError(UnavailableError):
    """The model could not be opened, or its engine has failed; the reason is in the server's log."""

    code = "model_failed"
    message = (
        "The model did not load or has failed; see the server's standard error, or engine.log if an editor started it."
    )


class EngineStoppedError(UnavailableError):
    """The engine is closing, or its thread has failed: the server ends, and a supervisor restarts it."""

    code = "engine_stopped"
    retry_after = RETRY_LOADING
    message = "The engine has stopped, so the server is stopping. Please try again after it restarts."


class UpstreamFailedError(UnavailableError):
    """The upstream server could not answer; its message says why."""

    code = "upstream_failed"
    retry_after = RETRY_LOADING
    message = "The upstream server could not answer."


class ClientGoneError(Exception):
    """The client closed the connection; nobody reads the answer any more."""


class StartError(Exception):
    """The server cannot start; the message says what to change."""


# The first that fits counts.
_ENGINE_ERRORS: Final[tuple[tuple[type[errors.EngineError], type[ApiError]], ...]] = (
    (errors.ContextTooLongError, ContextLengthError),
    (errors.InvalidRequestError, InvalidParameterError),
    # A schema that nothing fits, or that exceeds its budget during decoding.
    (errors.ConstraintFailedError, InvalidParameterError),
    (errors.CacheFullError, OverloadedError),
    (errors.DeadlineExceededError, OverloadedError),
    (errors.EngineStoppedError, EngineStoppedError),
    # Only a closing engine cancels a request that is still awaited.
    (errors.RequestCancelledError, EngineStoppedError),
)


def from_engine(error: Exception) -> ApiError | None:
    """A refusal of the engine or of an upstream server as a ApiError; None for any other error."""
    if isinstance(error, CompleterError):
        return UpstreamFailedError(str(error))
    kind = next((kind for refusal, kind in _ENGINE_ERRORS if isinstance(error, refusal)), None)
    if kind is None:
        return None
    # The message of an invalid request names a field and its bounds; the engine has never seen the user's text.
    return kind(str(error)) if kind is InvalidParameterError else kind()


def from_validation(error: RequestValidationError) -> ApiError:
    """The error for the first invalid field."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return InvalidParameterError("The request body is not valid JSON.")
    names = [part for part in first["loc"][1:] if isinstance(part, str)]
    if not names:
        return InvalidParameterError("The request body must be a JSON object.")
    param = ".".join(names)
    return InvalidParameterError(f"{param}: {first['msg'].removeprefix('Value error, ')}", param)


_STATUS_CODES: Mapping[int, tuple[str, str]] = {
    400: ("invalid_request", "The request is invalid."),
    404: ("not_found", "Unknown route."),
    405: ("method_not_allowed", "This route does not support this method."),
    413: ("request_too_large", "The request body is too large."),
}


def from_status(status: int, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A status that a library chose, in the published shape."""
    if status not in _STATUS_CODES:
        return JSONResponse(ApiError().body(), status, headers)
    code, message = _STATUS_CODES[status]
    return JSONResponse(shape(message, "invalid_request_error", code, None), status, headers)


async def response_to(_: Request, error: Exception) -> Response:
    """The response to an error of a route or the framework: also unknown paths, wrong methods, oversized bodies."""
    # Code that only reads settings should not have to import it.
    from fastapi.exceptions import RequestValidationError

    if isinstance(error, RequestValidationError):
        error = from_validation(error)
    if isinstance(error, HTTPException):
        return from_status(error.status_code, error.headers)
    return (error if isinstance(error, ApiError) else ApiError()).response()


def shape(message: str, kind: str, code: str | None, param: str | None) -> dict[str, Any]:
    """The published ErrorResponse."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
