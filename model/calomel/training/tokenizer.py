"""Train the byte-level BPE tokenizer on a corpus."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as FastTokenizer

from calomel.prompts import special
from calomel.prompts.tokenizer import PRE_TOKEN, Tokenizer


def train_tokenizer(texts: Iterable[str], path: Path, *, vocab_size: int) -> Tokenizer:
    """Train on `texts`, write `tokenizer.json` to `path`, and return it. Specials have the lowest ids."""
    fast = FastTokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRE_TOKEN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    fast.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(special.ALL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=3,
        max_token_length=24,
        show_progress=False,
    )
    fast.train_from_iterator(texts, trainer)
    contents = json.loads(fast.to_str())
    # An "added token" is recognised inside text; these must not be (see calomel.prompts.special).
    contents["added_tokens"] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(contents, ensure_ascii=False), encoding="utf-8")
    return Tokenizer.from_file(path)
