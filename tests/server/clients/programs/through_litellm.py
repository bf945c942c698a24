"""litellm, through its two providers of this API."""

import json
import os
from typing import Any

import litellm  # type: ignore[import-not-found, unused-ignore]
from shown import CHAT, FILL  # type: ignore[import-not-found, unused-ignore]

URL, TOKEN = os.environ["CALOMEL_URL"], os.environ["CALOMEL_TOKEN"]
litellm.num_retries = 0
where = {"api_base": f"{URL}/v1", "api_key": TOKEN}
said: dict[str, Any] = {}

fill = litellm.text_completion(model="text-completion-inception/mercury-edit-2", **FILL, **where)
said["fill"] = fill.choices[0].text
chunks = litellm.text_completion(model="text-completion-inception/mercury-edit-2", **FILL, stream=True, **where)
said["streamed"] = "".join(chunk.choices[0].text or "" for chunk in chunks if chunk.choices)
try:
    litellm.completion(model="inception/mercury-2", messages=CHAT, **where)
except litellm.NotFoundError as error:
    said["chat"] = error.status_code
try:
    litellm.completion(model="inception/mercury-2", messages=CHAT, api_base=f"{URL}/v1", api_key="wrong")
except litellm.AuthenticationError as error:
    said["wrong_token"] = error.status_code
print(json.dumps(said))  # noqa: T201
