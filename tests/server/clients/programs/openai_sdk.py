"""OpenAI's SDK, which has holes under a base address of its own."""

import json
import os
from typing import Any

import openai  # type: ignore[import-not-found, unused-ignore]
from shown import CHAT, EDIT, FILL  # type: ignore[import-not-found, unused-ignore]

URL, TOKEN = os.environ["CALOMEL_URL"], os.environ["CALOMEL_TOKEN"]
fim = openai.OpenAI(base_url=f"{URL}/v1/fim", api_key=TOKEN, max_retries=0)
client = openai.OpenAI(base_url=f"{URL}/v1", api_key=TOKEN, max_retries=0)
said: dict[str, Any] = {}

fill = fim.completions.create(model="mercury-edit-2", **FILL)
said["fill"] = fill.choices[0].text
streamed = list(fim.completions.create(model="m", **FILL, stream=True, stream_options={"include_usage": True}))
said["streamed"] = "".join(choice.text for chunk in streamed for choice in chunk.choices)
said["streamed_usage"] = streamed[-1].usage.total_tokens
completed = client.completions.create(model="m", **FILL)
said["completed"] = completed.choices[0].text
said["models"] = [model.id for model in client.models.list()]
edit = client.post(
    "/edit/completions", cast_to=object, body={"model": "m", "messages": [{"role": "user", "content": EDIT}]}
)
said["edit"] = edit["choices"][0]["message"]["content"]
try:
    client.chat.completions.create(model="m", messages=CHAT)
except openai.NotFoundError as error:
    said["chat"] = error.code
try:
    client.completions.create(model="m", prompt="x", temperature=9)
except openai.BadRequestError as error:
    said["wrong"] = error.param
print(json.dumps(said))  # noqa: T201
