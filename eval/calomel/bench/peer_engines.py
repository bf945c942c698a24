"""The engines that ours is compared with, over the same weights: `transformers` and llama.cpp, each at its fastest."""

from __future__ import annotations

import gc
import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from torch import Tensor

    from calomel.engine import ModelConfig, Transformer

Ends = Callable[[Sequence[int]], bool]
"""Whether an answer is complete; asked whenever it has grown by a token."""


class PeerUnavailableError(Exception):
    """The peer is not installed, or cannot read these weights; the message says which and what to do."""


class Peer(ABC):
    """One engine over one set of weights, decoding greedily. Not thread-safe.

    Attributes:
        name: as in the report's keys.
        settings: version, number type and threads, in words.
        read: how many tokens of the last prompt it had to encode.
    """

    name: str

    def __init__(self, settings: str) -> None:
        self.settings = settings
        self.read = 0
        self._seen: list[int] = []

    def decode(self, prompt: Sequence[int], most: int, end: int, ends: Ends) -> list[int]:
        """At most `most` greedy tokens after `prompt`, without the `end` token, until `ends` stops it.

        The cache of the previous prompt is reused for their common prefix. The last token of the prompt is always
        encoded again: its logits are the first that are needed.
        """
        from calomel.engine.cache import common_beginning  # imports torch, which came with the model

        kept = min(common_beginning(tuple(self._seen), tuple(prompt)), len(prompt) - 1)
        self.keep(kept)
        fresh = list(prompt[kept:])
        self.read = len(fresh)
        self._seen = [*prompt[:kept]]
        answer: list[int] = []
        while True:
            token = self.step(fresh)
            self._seen += fresh
            if token == end:
                return answer
            answer.append(token)
            if len(answer) == most or ends(answer):
                return answer
            fresh = [token]

    @abstractmethod
    def keep(self, count: int) -> None:
        """Drop all but the first `count` tokens from the cache."""

    @abstractmethod
    def step(self, fresh: Sequence[int]) -> int:
        """Encode tokens after the cached ones; returns the best next one."""

    @abstractmethod
    def close(self) -> None:
        """Release its memory."""


# Rows added at a time when there is no room left.
_MORE_ROOM: Final = 4096


class RoomyLayer:
    """Keys and values of one layer: `[1, heads, positions, head_dim]`.

    Args:
        window: how many positions a query sees, its own included; None for all.
    """

    is_compileable = False
    is_croppable = True
    is_initialized = True

    def __init__(self, window: int | None) -> None:
        self.is_sliding = window is not None
        self._window = window
        self._rows: tuple[Tensor, Tensor] | None = None
        self._length = 0

    def update(self, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append, and return what the new queries may see."""
        count = keys.shape[-2]
        rows = self._room_for(keys, self._length + count)
        for kept, fresh in zip(rows, (keys, values), strict=True):
            kept[:, :, self._length : self._length + count] = fresh
        visible, first = self.get_mask_sizes(count)
        self._length += count
        return rows[0][:, :, first : first + visible], rows[1][:, :, first : first + visible]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many positions the next `query_length` queries see, and the first of them."""
        first = 0 if self._window is None else max(0, self._length - self._window + 1)
        return self._length + query_length - first, first

    def get_seq_length(self) -> int:
        """Positions so far."""
        return self._length

    def get_max_length(self) -> int:
        """No bound, in the words of `transformers`."""
        return -1

    def crop(self, tokens_to_remove: int) -> None:
        """Drop the last `-tokens_to_remove` positions."""
        self._length += tokens_to_remove

    def _room_for(self, like: Tensor, length: int) -> tuple[Tensor, Tensor]:
        if self._rows is None or self._rows[0].shape[-2] < length:
            shape = (*like.shape[:2], length + _MORE_ROOM, like.shape[-1])
            larger = like.new_zeros(shape), like.new_zeros(shape)
            for old, new in zip(self._rows or (), larger, strict=False):
                new[:, :, : self._length] = old[:, :, : self._length]
            self._rows = larger
        return self._rows


class TransformersPeer(Peer):
    """A causal language model of `transformers` over the checkpoint in `folder`.

    Args:
        folder: `config.json` and safetensors in the names of the Hugging Face implementation.
        dtype: as in "bfloat16".
        threads: of PyTorch while it decodes.

    Raises:
        PeerUnavailableError: transformers is not installed, or has no class for the checkpoint.
    """

    name = "transformers"

    def __init__(self, folder: Path, *, dtype: str, threads: int) -> None:
        import torch

        try:
            library = import_module("transformers")
        except ImportError as error:
            raise PeerUnavailableError("transformers is missing: pip install -e '.[peers]'") from error
        library.utils.logging.disable_progress_bar()
        try:
            config = library.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            # Qwen3's class ignores the window unless this is set.
            config.sliding_window = raw.get("sliding_window")
            config.use_sliding_window = config.sliding_window is not None
            self._model: Any = library.AutoModelForCausalLM.from_pretrained(
                folder, config=config, dtype=getattr(torch, dtype), local_files_only=True, trust_remote_code=False
            ).eval()
        except (OSError, ValueError, KeyError) as error:
            raise PeerUnavailableError(f"transformers cannot open {folder.name}: {error}") from error
        # The cache asks its layers for their type. They are not subclasses, since the package may be absent.
        import_module("transformers.cache_utils").CacheLayerMixin.register(RoomyLayer)
        types = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
        layers = [RoomyLayer(config.sliding_window if kind == "sliding_attention" else None) for kind in types]
        self._cache: Any = library.Cache(layers=layers)
        self._threads = threads
        super().__init__(f"transformers {library.__version__}, {dtype}, a cache without copies, {threads} threads")

    def keep(self, count: int) -> None:
        """See `Peer`. Layer by layer: the cache's own `crop` requires its own classes."""
        for layer in self._cache.layers:
            layer.crop(min(0, count - len(self._seen)))

    def step(self, fresh: Sequence[int]) -> int:
        """See `Peer`."""
        import torch

        torch.set_num_threads(self._threads)
        with torch.inference_mode():
            ids = torch.tensor([list(fresh)])
            found = self._model(input_ids=ids, past_key_values=self._cache, use_cache=True, logits_to_keep=1)
            return int(found.logits[0, -1].argmax())

    def close(self) -> None:
        """Drop model and cache."""
        self._model = self._cache = None


NumberType = Literal["f32", "f16", "bf16", "q8_0"]
ARCHITECTURE: Final = "qwen3"
_Q8_BLOCK: Final = 32


def write_gguf(model: Transformer, path: Path, number_type: NumberType) -> None:
    """Write `model` to `path`, matrices as `number_type`, norms as 32-bit floats.

    `q8_0` is llama.cpp's own kind of eight bits, with a scale for 32 numbers of a row; rows of other
    lengths are written as `f16`.

    Raises:
        PeerUnavailableError: the package gguf is not installed, or the checkpoint does not have Qwen3's shape.
    """
    config = model.config
    if not config.qk_norm or config.attention_bias:
        raise PeerUnavailableError("llama.cpp's Qwen3 layout has norms on queries and keys and no biases")
    try:
        gguf: Any = import_module("gguf")
    except ImportError as error:
        raise PeerUnavailableError("gguf is missing: pip install -e '.[peers]'") from error
    writer = gguf.GGUFWriter(path, ARCHITECTURE)
    _describe(writer, config)
    kind = gguf.GGMLQuantizationType[number_type.upper()]
    narrow = gguf.GGMLQuantizationType.F16 if number_type == "q8_0" else kind
    for name, tensor in _tensors(model):
        values = tensor.detach().float().cpu().contiguous().numpy()
        if values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            own = narrow if values.shape[-1] % _Q8_BLOCK else kind
            writer.add_tensor(name, gguf.quants.quantize(values, own), raw_dtype=own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: Any, config: ModelConfig) -> None:
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("no_vocab")


def _tensors(model: Transformer) -> list[tuple[str, Tensor]]:
    """The tensors in llama.cpp's names, fused projections split."""
    config, state = model.config, model.state_dict()
    keys = config.num_key_value_heads * config.head_dim
    found = [("token_embd.weight", state["embed_tokens.weight"]), ("output_norm.weight", state["norm.weight"])]
    if not config.tie_word_embeddings:
        found.append(("output.weight", state["lm_head.weight"]))
    for layer in range(config.num_hidden_layers):
        ours, theirs = f"layers.{layer}", f"blk.{layer}"
        fused = state[f"{ours}.self_attn.qkv_proj.weight"]
        q, k, v = fused.split((fused.shape[0] - 2 * keys, keys, keys))
        gate, up = state[f"{ours}.mlp.gate_up_proj.weight"].chunk(2)
        found += [
            (f"{theirs}.attn_norm.weight", state[f"{ours}.input_layernorm.weight"]),
            (f"{theirs}.attn_q.weight", q),
            (f"{theirs}.attn_k.weight", k),
            (f"{theirs}.attn_v.weight", v),
            (f"{theirs}.attn_q_norm.weight", state[f"{ours}.self_attn.q_norm.weight"]),
            (f"{theirs}.attn_k_norm.weight", state[f"{ours}.self_attn.k_norm.weight"]),
            (f"{theirs}.attn_output.weight", state[f"{ours}.self_attn.o_proj.weight"]),
            (f"{theirs}.ffn_norm.weight", state[f"{ours}.post_attention_layernorm.weight"]),
            (f"{theirs}.ffn_gate.weight", gate),
            (f"{theirs}.ffn_up.weight", up),
            (f"{theirs}.ffn_down.weight", state[f"{ours}.mlp.down_proj.weight"]),
        ]
    return found


class LlamaCppPeer(Peer):
    """llama.cpp over a GGUF file.

    Args:
        file: as `write_gguf` writes it.
        positions: of prompt and answer together, at most.
        threads: of the processor.
        settings: the report's description of the file.

    Raises:
        PeerUnavailableError: llama-cpp-python is not installed, or cannot open the file.
    """

    name = "llamacpp"

    def __init__(self, file: Path, *, positions: int, threads: int, settings: str) -> None:
        try:
            library = import_module("llama_cpp")
        except ImportError as error:
            raise PeerUnavailableError("llama-cpp-python is missing: pip install -e '.[peers]'") from error
        try:
            self._model: Any = library.Llama(
                str(file), n_ctx=positions, n_threads=threads, n_threads_batch=threads, verbose=False
            )
        except (OSError, ValueError, AssertionError) as error:
            raise PeerUnavailableError(f"llama.cpp cannot open the weights: {error}") from error
        super().__init__(f"llama-cpp-python {library.__version__}, {settings}, {threads} threads")

    def keep(self, count: int) -> None:
        """See `Peer`. The next `eval` drops everything after this position."""
        self._model.n_tokens = count

    def step(self, fresh: Sequence[int]) -> int:
        """The steps of the library's own `generate`, without its comparison of prompts in Python."""
        self._model.eval(list(fresh))
        return int(self._model.sample(temp=0.0, top_k=1, repeat_penalty=1.0))

    def close(self) -> None:
        """Free the model."""
        self._model.close()


Maker = Callable[[], Peer]
Trial = Callable[[Peer], float]
"""Milliseconds that an answer takes."""

NUMBER_TYPES: Final[tuple[NumberType, ...]] = ("f32", "f16", "bf16", "q8_0")
QUICK_NUMBER_TYPES: Final[tuple[NumberType, ...]] = ("f16", "q8_0")
DTYPES, QUICK_DTYPES = ("float32", "bfloat16"), ("float32",)
# Of positions, beyond the prompt.
_ROOM: Final = 512


@dataclass(frozen=True, slots=True)
class Offer:
    """Which settings of the peers are tried.

    Attributes:
        folder: the checkpoint.
        context: prompt tokens.
        threads: thread counts to try.
        quick: only the settings that were fastest elsewhere.
    """

    folder: Path
    context: int
    threads: Sequence[int]
    quick: bool = False


@contextmanager
def open_peers(offer: Offer, trial: Trial, say: Callable[[str], None]) -> Iterator[tuple[list[Peer], list[str]]]:
    """The available peers, each at its fastest, and why the others are not; closed at the end."""
    peers: list[Peer] = []
    missing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="calomel-peers-") as place:
        try:
            for make in (transformers_makers, llamacpp_makers):
                try:
                    peers.append(fastest(make(offer, Path(place)), trial, say))
                except PeerUnavailableError as error:
                    missing.append(str(error))
            yield peers, missing
        finally:
            for peer in peers:
                peer.close()


def fastest(makers: Sequence[Maker], trial: Trial, say: Callable[[str], None]) -> Peer:
    """A new peer with the settings whose trial took least time; the tried ones are closed."""
    took: list[float] = []
    for make in makers:
        peer = make()
        took.append(trial(peer))
        say(f"{peer.name}: {peer.settings}: {took[-1]:.0f} ms an answer")
        peer.close()
        gc.collect()
    return makers[min(range(len(makers)), key=took.__getitem__)]()


def transformers_makers(offer: Offer, _: Path) -> list[Maker]:
    """One maker per setting of transformers that is tried."""
    return [
        partial(TransformersPeer, offer.folder, dtype=dtype, threads=count)
        for dtype in (QUICK_DTYPES if offer.quick else DTYPES)
        for count in offer.threads
    ]


def llamacpp_makers(offer: Offer, place: Path) -> list[Maker]:
    """One maker per setting of llama.cpp that is tried; writes a file per number type into `place`."""
    from calomel.families.loading import load_checkpoint

    model = load_checkpoint(offer.folder)
    makers: list[Maker] = []
    for kind in QUICK_NUMBER_TYPES if offer.quick else NUMBER_TYPES:
        file = place / f"{kind}.gguf"
        write_gguf(model, file, kind)
        positions = offer.context + _ROOM
        makers += [
            partial(LlamaCppPeer, file, positions=positions, threads=count, settings=kind) for count in offer.threads
        ]
    return makers
