"""The same weights in `transformers`: its own model class and cache, decoding greedily.

The loop is ours and shorter than `generate`, which checks more for every token, and so is the cache, if that is
faster: it is the kinder comparison. Keys and values of all positions are kept, so that the cache can be cut back to
what the next prompt begins with; `DynamicCache` has the windows of sliding layers in the mask then.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from calomel.bench.peers.peer import Ends, PeerUnavailableError, common_beginning
from calomel.bench.peers.roomy_cache import RoomyLayer, roomy_layers

CacheKind = Literal["dynamic", "roomy"]


class TransformersPeer:
    """A causal language model of `transformers` over the checkpoint in `folder`.

    Args:
        folder: `config.json` and safetensors in the names of the Hugging Face implementation.
        dtype: as in "bfloat16".
        threads: of PyTorch while it decodes.
        cache: its own `DynamicCache`, or one that copies nothing.

    Raises:
        PeerUnavailableError: transformers is not installed, or has no class for the checkpoint.
    """

    name = "transformers"

    def __init__(self, folder: Path, *, dtype: str, threads: int, cache: CacheKind = "roomy") -> None:
        import torch

        try:
            library = import_module("transformers")
        except ImportError as error:
            raise PeerUnavailableError("transformers is not installed: pip install -e '.[peers]'") from error
        library.utils.logging.disable_progress_bar()
        try:
            config = library.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            # The class of Qwen3 drops the window unless it is told to use it.
            config.sliding_window = raw.get("sliding_window")
            config.use_sliding_window = config.sliding_window is not None
            self._model: Any = library.AutoModelForCausalLM.from_pretrained(
                folder, config=config, dtype=getattr(torch, dtype), local_files_only=True, trust_remote_code=False
            ).eval()
        except (OSError, ValueError, KeyError) as error:
            raise PeerUnavailableError(f"transformers can not open {folder.name}: {error}") from error
        # The cache asks its layers what they are. They are no subclasses: the package may be absent.
        import_module("transformers.cache_utils").CacheLayerMixin.register(RoomyLayer)
        types = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
        self._cache: Any = (
            library.DynamicCache()
            if cache == "dynamic"
            else library.Cache(layers=roomy_layers(types, config.sliding_window))
        )
        self._threads = threads
        self._seen: list[int] = []
        self.read = 0
        kept = "DynamicCache" if cache == "dynamic" else "a cache without copies"
        self.settings = f"transformers {library.__version__}, {dtype}, {kept}, {threads} threads"

    def decode(self, prompt: Sequence[int], most: int, end: int, ends: Ends) -> list[int]:
        """At most `most` greedy tokens behind `prompt`, see `Peer`."""
        import torch

        torch.set_num_threads(self._threads)
        # The last token of the prompt is always read anew: its logits are the first that are needed.
        kept = min(common_beginning(self._seen, prompt), len(prompt) - 1)
        if kept < len(self._seen):
            # Layer by layer: the cache's own `crop` asks for its own classes.
            for layer in self._cache.layers:
                layer.crop(kept - len(self._seen))
        answer: list[int] = []
        fresh = list(prompt[kept:])
        self.read = len(fresh)
        self._seen = [*prompt[:kept]]
        with torch.inference_mode():
            while True:
                ids = torch.tensor([fresh])
                found = self._model(input_ids=ids, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
                self._seen += fresh
                token = int(found.logits[0, -1].argmax())
                if token == end:
                    return answer
                answer.append(token)
                if len(answer) == most or ends(answer):
                    return answer
                fresh = [token]

    def close(self) -> None:
        """Drop model and cache."""
        self._model = self._cache = None
