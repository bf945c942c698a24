"""The part of `calomel doctor` about the server: settings, token, port, runtime files, model, device, memory, speed."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from calomel.cli.output import plural
from calomel.infer import runtime_file
from calomel.infer.completer import Completer, CompleteRequest, CompleterError
from calomel.infer.extras import has_engine, without_engine
from calomel.infer.launch import answers
from calomel.infer.remote import is_loopback, to_answer
from calomel.infer.runtime_file import RuntimeFileError, ServerRecord, socket_in
from calomel.infer.upstream.running import Running, running
from calomel.prompts.fim_tokens import format_named
from calomel.server import tokens
from calomel.server.errors import StartError
from calomel.server.settings import Layered, ServeSettings
from calomel.storage import load_average, processors
from calomel.storage.failures import cause
from calomel.weights import nano_path
from calomel.weights.folders import ModelNameError, folder_of, is_model, weights_bytes
from calomel.workspace.settings import BackendSettings, Settings, load_settings, user_settings_path

if TYPE_CHECKING:
    import httpx

    from calomel.infer.client import ModelClient


def check_upstream(settings: ServeSettings, ports: Sequence[tuple[str, int]] | None = None) -> Iterator[Finding]:
    """Whether the named server answers, and where its confidences come from; else what runs at the usual places."""
    if settings.upstream is None:
        yield from map(_found, asyncio.run(running(ports)))
        return
    from calomel.server.upstream import upstream_of

    try:
        upstream = upstream_of(settings)
        if upstream is not None:
            upstream.look()
            yield ok("upstream", upstream.note)
    except StartError as error:
        yield fail("upstream", str(error), "correct that setting")
    except CompleterError as error:
        if error.code == "refused":
            yield fail("upstream", str(error), "correct that, or remove `upstream`")
        else:
            start = to_answer(settings.upstream, "start that server")
            yield warn("upstream", str(error), f"{start}, or remove `upstream`")


def _found(server: Running) -> Finding:
    """A server of this machine, and the command that uses it, unless all editors ask it."""
    names, loads = server.models, " and still loads its model" if server.loading else ""
    told = f"{server.title} runs at {server.url}{loads}"
    chosen = load_settings(user_toml=user_settings_path())[0].backend.upstream or ""
    if chosen.replace("//localhost:", "//127.0.0.1:") == server.url:
        return ok("upstream", f"{told}; all editors ask it")
    model = f" {shlex.quote(_likely(names))}" if len(names) > 1 else ""
    option = f" --upstream-model{model}" if model else ""
    advice = (
        f"calomel models use --upstream {server.url}{model}, for all editors; "
        f"calomel serve --upstream {server.url}{option}, for others"
    )
    return Finding("ok", "upstream", told, advice)


def _likely(names: Sequence[str]) -> str:
    """The model that fills gaps, judging by the names."""
    likely = [name for name in names if format_named(name)]
    return next((name for name in likely if "code" in name.lower()), (likely or names)[0])


@dataclass(frozen=True, slots=True)
class Finding:
    """A check's result: severity, subject, what was found, and what to do about it."""

    level: Literal["ok", "warn", "fail"]
    subject: str
    found: str
    advice: str = ""


def ok(subject: str, found: str) -> Finding:
    """The subject is fine."""
    return Finding("ok", subject, found)


def warn(subject: str, found: str, advice: str) -> Finding:
    """The subject works, but not as it should."""
    return Finding("warn", subject, found, advice)


def fail(subject: str, found: str, advice: str) -> Finding:
    """The subject does not work."""
    return Finding("fail", subject, found, advice)


_ANSWER_SECONDS: Final = 5.0


def check_server(layered: Layered, *, read: bool = True) -> Iterator[Finding]:
    """Everything that a start needs, except the model; whether the settings were `read` without a fault."""
    settings = layered.settings
    there = layered.path is not None and os.path.lexists(layered.path)
    none = f"no settings file ({layered.path}): defaults apply; `calomel serve` also reads CALOMEL_ variables"
    if read:
        yield ok("settings", str(layered.path) if there else none)
    yield _token(settings)
    yield _reach(settings)
    record, finding = _running(settings.runtime_file or runtime_file.default_path(), "runtime file")
    yield from finding
    if record is not None:
        yield _answer(record)
    elif not finding:
        yield ok("runtime file", "no server is running")
    # Servers that editors started themselves.
    folder = runtime_file.runtime_folder()
    for path in (*sorted(folder.glob("engine-*.json")), *sorted(folder.glob("llama-*.json"))):
        shared, finding = _running(path, "editors' server")
        yield from finding
        if shared is not None:
            yield ok("editors' server", f"process {shared.pid} at {shared.url}")
    yield _port(settings, record)


def _token(settings: ServeSettings) -> Finding:
    if settings.no_auth:
        return warn("token", "no-auth: every program and user of this machine can connect", "drop no-auth")
    if settings.token is not None:
        return ok("token", "from the settings")
    path = settings.token_file or tokens.default_path()
    try:
        content = tokens.read(path)
    except FileNotFoundError:
        return ok("token", f"none yet; the first `calomel serve` creates {path}")
    except StartError as error:
        return fail("token", str(error), f"chmod 600 {path}, or remove it: the next start creates another")
    return ok("token", f"{plural(len(content.by_name), 'token')} in {path}")


def _reach(settings: ServeSettings) -> Finding:
    from calomel.server.run import tls_of

    try:
        encrypted = tls_of(settings) is not None
    except (StartError, OSError) as error:
        return fail("address", cause(error), "correct tls-cert and tls-key")
    if is_loopback(settings.host):
        return ok("address", f"{settings.host}: only this machine can connect")
    if not encrypted:
        return warn(
            "address", f"{settings.host}: other machines can connect, unencrypted", "set tls-cert, or use a TLS proxy"
        )
    return ok("address", f"{settings.host}: other machines can connect, encrypted")


def _running(path: Path, subject: str) -> tuple[ServerRecord | None, list[Finding]]:
    """The server of a runtime file, if it is running; else what is wrong with the file, if it exists."""
    try:
        record = runtime_file.read(path)
    except RuntimeFileError as error:
        return None, [fail(subject, str(error), f"rm {path}")]
    if record is None or record.alive():
        return record, []
    return None, [warn(subject, f"{path} belongs to a server that has stopped", f"rm {path}")]


def _answer(record: ServerRecord) -> Finding:
    """Ask the running server for its state."""
    import httpx

    place = f"process {record.pid} at {record.url}"
    if not record.url.startswith("https:") and not answers(record):
        # Whoever has its address now must not see its token.
        what = f"{place} does not answer"
        return fail("running server", what, f"stop process {record.pid}, then run `calomel serve` again")
    try:
        with _client(record) as client:
            health = client.get("/health")
            allowed = client.get("/v1/models")
            state = health.json()["status"]
    except (httpx.HTTPError, ValueError, KeyError) as error:
        what = f"{place} does not answer ({type(error).__name__})"
        return fail("running server", what, f"stop process {record.pid}, then run `calomel serve` again")
    if allowed.status_code != httpx.codes.OK:
        advice = f"stop process {record.pid}, then run `calomel serve` again"
        return fail("running server", f"{place} rejects its own token", advice)
    if state != "ok":
        return warn("running server", f"{place}: {state}", "wait a moment, then see what `calomel serve` printed")
    return ok("running server", place)


def _port(settings: ServeSettings, running: ServerRecord | None) -> Finding:
    if settings.port == 0:
        return ok("port", "the system chooses one")
    if running is not None and running.url.endswith(f":{settings.port}"):
        return ok("port", f"{settings.port} belongs to this server")
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        socket.create_server((settings.host, settings.port), family=family).close()
    except OSError as error:
        # Python's own message repeats the address.
        why = os.strerror(error.errno) if error.errno else str(error)
        advice = "another program uses it: choose another --port, or 0 for any"
        return fail("port", f"{settings.host} port {settings.port}: {why}", advice)
    return ok("port", f"{settings.port} is free")


def _status(record: ServerRecord) -> dict[str, Any]:
    """The status of the running server; empty if it does not answer."""
    import httpx

    try:
        with _client(record) as client:
            answer = client.get("/calomel/v1/status")
            body: dict[str, Any] = answer.json() if answer.status_code == httpx.codes.OK else {}
    except (httpx.HTTPError, ValueError):
        return {}
    return body


def _client(record: ServerRecord) -> httpx.Client:
    import httpx

    headers = {} if record.token is None else {"authorization": f"Bearer {record.token}"}
    # The certificate is whatever the user chose; the only secret sent is the user's token, to the user's own address.
    transport = httpx.HTTPTransport(uds=socket_in(record.url), verify=False, trust_env=False)
    base = record.url if socket_in(record.url) is None else "http://localhost"
    return httpx.Client(base_url=base, headers=headers, transport=transport, timeout=_ANSWER_SECONDS)


def writable(folder: Path) -> Finding:
    """Whether the server can save what it learns."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if os.access(place, os.W_OK):
        return ok("state", str(folder))
    return warn("state", f"cannot write to {folder}", "Calomel stores the outcomes of suggestions there: chmod u+w it")


MIB: Final = 1024 * 1024


def check_model(settings: ServeSettings) -> Iterator[Finding]:
    """Everything that suggestions need."""
    try:
        folder = folder_of(settings.model) or nano_path()
    except ModelNameError as error:
        yield fail("model", str(error), "list them: calomel models list")
        return
    if has_engine():
        yield check_folder(folder)
        device = check_device(settings.device)
        yield device
        if device.level == "ok":
            yield from _memory(folder, settings)
    else:
        found = "none is installed: `calomel serve` works with `upstream` only"
        yield warn("model", found, without_engine("set `upstream` to a server that has one"))
    yield _grammars()


def check_folder(folder: Path, subject: str = "model") -> Finding:
    """Read all of a checkpoint except the weights themselves."""
    from calomel.families.configuration import read_config
    from calomel.families.shards import Shards
    from calomel.families.table import find
    from calomel.infer.in_process import describe
    from calomel.infer.recall import CopyScorer
    from calomel.prompts.published import open_published
    from calomel.prompts.tokenizer import Tokenizer
    from calomel.selectivity.calibrator import Calibrator

    if not is_model(folder):
        return fail(subject, f"{folder} has no config.json with .safetensors weights", "choose another --model")
    try:
        info = describe(folder)
        family = find(folder)
        shape = family.config(read_config(folder), folder)
        if info.tokenizer is None:
            tokens = shape.diffusion
            open_published(folder, family.prompts, end=tokens.end_token_id, mask=tokens.mask_token_id)
        else:
            Tokenizer.from_file(Path(info.tokenizer))
            CopyScorer.read(folder)
        Shards(folder)
        Calibrator.of_folder(folder)
    except Exception as error:  # noqa: BLE001 (whatever is in the files)
        return fail(subject, f"{folder}: {cause(error)}", "fetch it again, or choose another model")
    return ok(subject, f"{folder} ({', '.join(info.kinds)}; up to {info.max_context} tokens)")


def _memory(folder: Path, settings: ServeSettings) -> Iterator[Finding]:
    """Whether the device has the memory that the server would take, estimated as the server does before it loads."""
    from calomel.engine import CheckpointError
    from calomel.families.family import OpenOptions
    from calomel.families.loading import dtype_of
    from calomel.families.memory import free_bytes, program_bytes
    from calomel.families.plan import OutOfMemoryRefusedError, plan_of

    free = free_bytes(settings.device)
    process = program_bytes(settings.device, dtype_of(None, settings.device))
    options = OpenOptions(
        device=settings.device,
        cache_tokens=settings.cache_tokens,
        quantize=settings.quantize,
        max_batch=settings.max_batch,
        memory_limit=max(0, free - process),
    )
    try:
        chosen = plan_of(folder, options)
    except OutOfMemoryRefusedError as error:
        yield fail("memory", str(error), "close other programs, or choose a smaller model")
    except CheckpointError:
        return  # the model's own line says what is wrong
    else:
        needed, how = (process + chosen.estimate.total) // MIB, chosen.options
        served = f"{how.cached} tokens cached and {plural(how.batch, 'request')} at a time"
        yield ok("memory", f"{free // MIB} MiB free; estimated need {needed} MiB, with {served}")


def check_device(device: str, subject: str = "device") -> Finding:
    """Whether PyTorch can use a device; where it cannot, the command that mends it."""
    from calomel.cli.device_checks import described, problem_of

    problem = problem_of(device)
    if problem is not None:
        return fail(subject, f"{device}: {problem.found}", problem.advice)
    if device == "cpu":
        import torch

        return ok(subject, f"{device}, {plural(processors(), 'processor')}, PyTorch {torch.__version__}")
    return ok(subject, described(device))


def _grammars() -> Finding:
    from calomel.code.languages import GRAMMARS, load

    missing = sorted({grammar.module for grammar in GRAMMARS if load(grammar) is None})
    if missing:
        return warn("grammars", f"cannot load {', '.join(missing)}", "install Calomel again")
    return ok("grammars", f"{len(GRAMMARS)} languages")


# Opening a larger model only to measure its speed takes minutes and memory.
_LARGEST_BYTES: Final = 128 * MIB
# How long editors wait for text at the cursor.
LATE_SECONDS: Final = 1.5
_PATIENCE: Final = 60.0
_ANSWER_TOKENS: Final = 64
# About as many characters as a token has.
_TOKEN_CHARACTERS: Final = 3


class Pace(NamedTuple):
    """The time of an answer, in seconds, at a new place and at the next keystroke there, with this much context."""

    fresh: float
    next: float
    tokens: int


def check_speed(settings: Settings, measure: Callable[[Settings], Pace | None] | None = None) -> Finding:
    """Ask the model twice, as an editor would, and check the load of the processors."""
    wanted = load_average()
    others = f"{'load unknown' if wanted is None else f'load {wanted:.1f}'} on {plural(processors(), 'processor')}"
    try:
        pace = (measure or measured)(settings)
    except CompleterError as error:
        # It may only be busy, or not have loaded its model yet.
        level = fail if error.code in {"refused", "failed", "unreachable"} else warn
        return level("speed", f"not measured: {error}", "fix the problems above first")
    except Exception as error:  # noqa: BLE001 (whatever a model's files or a driver make of it)
        return fail("speed", f"not measured: {cause(error)}", "fix the problems above first")
    if pace is None:
        return ok("speed", f"not measured: the model is large; calomel bench speed does it; {others}")
    text = (
        f"{pace.next * 1000:.0f} ms for the next keystroke, {pace.fresh * 1000:.0f} ms at a new place with "
        f"{pace.tokens} tokens of context; {others}"
    )
    if pace.next < LATE_SECONDS and pace.fresh < 2 * LATE_SECONDS:
        return ok("speed", text)
    busy = "stop other programs that keep the processors busy, " if wanted is not None and wanted > processors() else ""
    return warn("speed", f"too slow: {text}", f"{busy}set suggest.context_tokens = 512, or choose a smaller model")


def measured(settings: Settings, clock: Callable[[], float] = time.perf_counter) -> Pace | None:
    """The speed of the model that editors ask; None for one that is too large to be opened for this."""
    from calomel.infer import llama_cpp
    from calomel.infer.client import ModelClient
    from calomel.infer.launch import find, model_folder

    server = settings.backend
    folder = None
    if server.url is None and server.upstream is None and find(server) is None:
        folder = model_folder(server.model) or nano_path()
        if weights_bytes(folder) > _LARGEST_BYTES or llama_cpp.opens(folder):
            return None

    async def opened(server: BackendSettings) -> Completer:
        from calomel.infer.in_process import open_completer
        from calomel.infer.launch import connect

        return await connect(server) if folder is None else open_completer(folder, server.device)

    return asyncio.run(_measured(settings, ModelClient(opened, server), clock))


async def _measured(settings: Settings, client: ModelClient, clock: Callable[[], float]) -> Pace:
    from calomel.prompts.parts import PromptParts

    try:
        async with asyncio.timeout(_PATIENCE):
            info = await client.ready()
            tokens = min(settings.suggest.context_tokens or info.default_context, info.max_context)
            text = "".join(f"def double_{number}(value):\n    return {number} * value\n\n\n" for number in range(600))
            text = text[: tokens * _TOKEN_CHARACTERS] + "\n\n\ndef "
            seconds = []
            # The first answer of a process includes one-time work.
            for prompt in ("warm", text, text + "t"):
                parts = PromptParts(prefix=prompt, suffix="\n")
                request = CompleteRequest("fill", parts, max_tokens=_ANSWER_TOKENS, stop=("\n",), max_context=tokens)
                began = clock()
                await client.complete(request)
                seconds.append(clock() - began)
    except TimeoutError:
        return Pace(_PATIENCE, _PATIENCE, 0)
    finally:
        await client.aclose()
    return Pace(seconds[1], seconds[2], tokens)
