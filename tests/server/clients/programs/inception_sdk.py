"""The official SDK, with its responses validated strictly."""

import json
import os
from collections.abc import Callable
from typing import Any

import inceptionai  # type: ignore[import-not-found, unused-ignore]
from inceptionai import Inception
from shown import APPLY, CHAT, EDIT, FILL  # type: ignore[import-not-found, unused-ignore]

URL, TOKEN = os.environ["CALOMEL_URL"], os.environ["CALOMEL_TOKEN"]
client = Inception(base_url=URL, api_key=TOKEN, max_retries=0, _strict_response_validation=True)
said: dict[str, Any] = {}

fill = client.fim.completions.create(model="mercury-edit-2", **FILL)
said["fill"] = fill.choices[0].text
said["fill_usage"] = fill.usage.total_tokens
streamed = list(client.fim.completions.create(model="m", **FILL, stream=True, stream_options={"include_usage": True}))
said["streamed"] = "".join(choice.text for chunk in streamed for choice in chunk.choices)
# An extension of its chunks, which it does not describe.
said["streamed_usage"] = streamed[-1].usage["total_tokens"]

edit = client.edit.completions.create(model="mercury-edit-2", messages=[{"role": "user", "content": EDIT}])
said["edit"] = edit.choices[0].message.content
said["edit_object"] = edit.object
said["models"] = [model.id for model in client.models.list().data]
said["fim_models"] = [model.id for model in client.models.list_fim().data]
said["edit_models"] = [model.id for model in client.models.list_edit().data]

# The SDK has no method for this route, but sends to any.
applied = client.post(
    "/v1/apply/completions",
    cast_to=object,
    body={"model": "mercury-edit-2", "messages": [{"role": "user", "content": APPLY}]},
)
said["applied"] = applied["choices"][0]["message"]["content"]


def refused(call: Callable[[], Any], kind: Any) -> Any:
    """The code of the error that `call` raises, which has to be of this kind."""
    try:
        call()
    except kind as error:
        return error.body["error"]["code"]
    return None


other = Inception(base_url=URL, api_key="wrong", max_retries=0)
said["wrong_token"] = refused(other.models.list, inceptionai.AuthenticationError)
said["too_many"] = refused(
    lambda: client.fim.completions.create(model="m", prompt="x", max_tokens=9999), inceptionai.BadRequestError
)
said["chat"] = refused(lambda: client.chat.completions.create(model="m", messages=CHAT), inceptionai.NotFoundError)
print(json.dumps(said))  # noqa: T201
