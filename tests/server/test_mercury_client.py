"""What the hosted service is asked, beside the makers' own client, `inceptionai` of PyPI.

Fetched by the test, into the user's cache; skipped where that is impossible.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest
from tests.server import _upstreams as played
from tests.server._llama_cpp import packages
from tests.server._upstreams import Play, served

from calomel.infer.completer import CompleteRequest
from calomel.infer.upstream.completer import UpstreamCompleter
from calomel.infer.upstream.exchange import Target
from calomel.prompts.parts import EditRegion, PromptParts

# The names of its routes' parameters; those that its library adds are none of the service's.
PARAMETERS = """
import inspect, json
from inceptionai.resources.edit.completions import CompletionsResource as Edit
from inceptionai.resources.fim.completions import CompletionsResource as Fim
own = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}
print(json.dumps([sorted(inspect.signature(each.create).parameters.keys() - own) for each in (Fim, Edit)]))
"""


@pytest.mark.slow
def test_no_field_is_sent_that_the_makers_own_client_does_not_know() -> None:
    surroundings = packages("inceptionai", "inceptionai==0.3.0", "sniffio", "distro")
    ran = subprocess.run(
        [sys.executable, "-c", PARAMETERS], capture_output=True, text=True, env=surroundings, check=True
    )
    fim, edit = json.loads(ran.stdout)
    play = Play(region="```\nx = 2\n```")
    hole = PromptParts(path="a.py", prefix="x = ", suffix="\n")
    region = PromptParts(path="a.py", region=EditRegion("x = 1\n", 4))

    async def ask(url: str) -> None:
        completer = UpstreamCompleter(Target(url, "mercury"))
        await completer.complete(CompleteRequest("fill", hole, max_tokens=16))
        await completer.complete(CompleteRequest("edit", region, max_tokens=16))
        await completer.aclose()

    with served(played.mercury(play)) as url:
        asyncio.run(ask(url))

    sent = {path: set(body) for path, body in play.asked if body}
    assert sent["/v1/fim/completions"] <= set(fim)
    assert sent["/v1/edit/completions"] <= set(edit)
