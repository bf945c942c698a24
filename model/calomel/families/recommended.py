"""Which published model for which machine: the only table of it, for the command line, the editors and docs/models.md.

It imports neither PyTorch nor the engine, so that a language server can read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Use = Literal["text", "edits", "both"]
Kind = Literal["cpu", "gpu", "apple", "hosted"]
_NOBODY: Final = "nobody has measured it here"
# Of https://github.com/MizuchiLabs/tsugi.nvim, bench/RESULTS.md: at points of pinned public repositories, the rest of a
# line or block is shown or not; of what is shown, so much is as the author wrote it.
_TSUGI: Final = "published by tsugi.nvim (RTX 3090)"
_CURSORTAB: Final = "published by cursortab.nvim"
_INFILLING: Final = "published by msritian/Diffusion-Language-Models (in bfloat16)"


@dataclass(frozen=True, slots=True)
class Recommended:
    """A published model in one quantisation.

    Attributes:
        title: for people.
        checkpoint: whose weights they are, as owner/name on the hub; of a hosted model, its name.
        gguf: OWNER/NAME:QUANT for `calomel models fetch` and `llama-server -hf`; empty for a hosted model.
        ollama: its name for `ollama pull`; empty where Ollama's library has none.
        use: text at the cursor, next edits, or both by the same weights.
        disk: of the file, in GB (a thousand million bytes).
        memory: with a context of 8,192 tokens, in GB: computed from the model's shape, not measured.
        licence: of the weights.
        figure: what is known of its quality, and who says so.
    """

    title: str
    checkpoint: str
    gguf: str
    ollama: str
    use: Use
    disk: float
    memory: float
    licence: str
    figure: str

    @property
    def repository(self) -> str:
        """Owner and name, by which `calomel models use` knows it once it is fetched."""
        return self.gguf.partition(":")[0]


_QWEN_05: Final = Recommended(
    "Qwen2.5-Coder 0.5B",
    "Qwen/Qwen2.5-Coder-0.5B",
    "ggml-org/Qwen2.5-Coder-0.5B-Q8_0-GGUF:Q8_0",
    "qwen2.5-coder:0.5b-base",
    "text",
    0.5,
    1.5,
    "Apache-2.0",
    f"completions: {_INFILLING}: HumanEval-Infilling 74.2, SantaCoder-FIM 64.9; {_NOBODY}",
)
_QWEN_15: Final = Recommended(
    "Qwen2.5-Coder 1.5B",
    "Qwen/Qwen2.5-Coder-1.5B",
    "ggml-org/Qwen2.5-Coder-1.5B-Q8_0-GGUF:Q8_0",
    "qwen2.5-coder:1.5b-base",
    "text",
    1.6,
    2.9,
    "Apache-2.0",
    f"completions: {_INFILLING}, of its Instruct sibling: HumanEval-Infilling 80.3, SantaCoder-FIM 59.5; {_NOBODY}",
)
_QWEN_7: Final = Recommended(
    "Qwen2.5-Coder 7B",
    "Qwen/Qwen2.5-Coder-7B",
    "QuantFactory/Qwen2.5-Coder-7B-GGUF:Q4_K_M",
    "qwen2.5-coder:7b-base",
    "text",
    4.7,
    6.2,
    "Apache-2.0",
    "completions: published by its makers (arXiv 2409.12186): state of the art at its size on more than ten "
    f"benchmarks, completion among them; {_NOBODY}",
)
_SEED_8: Final = Recommended(
    "Seed-Coder 8B Base",
    "ByteDance-Seed/Seed-Coder-8B-Base",
    "mradermacher/Seed-Coder-8B-Base-GGUF:Q8_0",
    "hf.co/mradermacher/Seed-Coder-8B-Base-GGUF:Q8_0",
    "text",
    8.8,
    10.9,
    "MIT",
    f"completions: {_TSUGI}: shown at 67 % of the places, 90 % of it right; {_NOBODY}",
)
_SWEEP_05: Final = Recommended(
    "Sweep Next-Edit 0.5B",
    "sweepai/sweep-next-edit-0.5B",
    "sweepai/sweep-next-edit-0.5B:Q8_0",
    "",
    "both",
    0.5,
    1.5,
    "Apache-2.0",
    f"next edits: {_CURSORTAB}: 0.10 of 1, published by its makers: 61 % of their own set; {_NOBODY}",
)
_SWEEP_15: Final = Recommended(
    "Sweep Next-Edit 1.5B",
    "sweepai/sweep-next-edit-1.5B",
    "sweepai/sweep-next-edit-1.5B:Q8_0.v2",
    "",
    "both",
    1.6,
    2.9,
    "Apache-2.0",
    f"next edits: {_CURSORTAB}: 0.20 of 1, published by its makers: 68 % of their own set; {_NOBODY}",
)
_SWEEP_7: Final = Recommended(
    "Sweep Next-Edit v2 7B",
    "sweepai/sweep-next-edit-v2-7B",
    "henrik3/sweep-next-edit-v2-7B-GGUF:Q4_K_M",
    "",
    "both",
    4.7,
    6.2,
    "Apache-2.0",
    f"next edits: {_CURSORTAB} as sweep-7B: 0.22 of 1; completions: {_TSUGI}: shown at 69 % of the places, "
    f"81 % of it right; {_NOBODY}",
)
_ZETA: Final = Recommended(
    "Zed's Zeta 2.1 (8B)",
    "zed-industries/zeta-2.1",
    "mradermacher/zeta-2.1-GGUF:Q8_0",
    "hf.co/mradermacher/zeta-2.1-GGUF:Q8_0",
    "edits",
    8.8,
    10.9,
    "Apache-2.0",
    f"next edits: {_CURSORTAB} as zeta-2: 0.56 of 1; published by d34dscene/cursortab.nvim for 50 newer ones: 0.26 "
    f"of 1, the best of five models; {_NOBODY}",
)
_MERCURY: Final = Recommended(
    "Mercury, hosted",
    "Mercury",
    "",
    "",
    "both",
    0.0,
    0.0,
    "a service of Inception Labs",
    f"next edits: published by Sweep, of Mercury Coder: 54 % of their own set; {_NOBODY}",
)


@dataclass(frozen=True, slots=True)
class Row:
    """What to run on a machine.

    Attributes:
        machine: for people.
        kind: what computes.
        memory: that it needs, in GiB: free memory of the machine for a CPU, the card's own, or all of an Apple's.
        cores: of the CPU; 0 where they do not matter.
        text: for text at the cursor; None for nano.
        edits: for next edits; None for nano with Calomel's rules.
    """

    machine: str
    kind: Kind
    memory: float
    cores: int
    text: Recommended | None
    edits: Recommended | None

    def holds_both(self, memory: float | None = None) -> bool:
        """Whether two different models fit in this memory in GiB, by default the row's, at the same time."""
        if self.text is None or self.edits is None or self.text == self.edits:
            return False
        return self.text.memory + self.edits.memory <= (memory or self.memory)


ON_A_CPU: Final = (
    "On few cores it may be too slow. Measured here: on two, in llama.cpp, SmolLM2-135M in eight bits read 1,800 "
    "tokens in 5.7 s, then answered each key in 150 ms; four times the size takes about four times as long."
)
# Of each kind from the smallest machine up.
ROWS: Final = (
    Row("any CPU with 1 GB free", "cpu", 0.0, 0, None, None),
    Row("CPU with 4 cores, 4 GB free", "cpu", 4.0, 4, _QWEN_05, _SWEEP_05),
    Row("CPU with 8 cores, 8 GB free", "cpu", 8.0, 8, _QWEN_15, _SWEEP_15),
    Row("GPU with 8 GB", "gpu", 8.0, 0, _QWEN_7, _SWEEP_7),
    Row("GPU with 12 GB", "gpu", 12.0, 0, _SEED_8, _ZETA),
    Row("GPU with 24 GB", "gpu", 24.0, 0, _SEED_8, _ZETA),
    Row("Apple silicon, 16 GB", "apple", 16.0, 0, _QWEN_7, _SWEEP_7),
    Row("Apple silicon, 32 GB", "apple", 32.0, 0, _SEED_8, _ZETA),
    Row("your code may leave the machine", "hosted", 0.0, 0, _MERCURY, _MERCURY),
)
# A card of 8 GB has a little less, and what shows the screen takes a little of it.
_ABOUT: Final = 0.94


def recommended(kind: Kind, memory: float, cores: int = 0) -> Row:
    """The row of the largest machine that this one is as large as; that of a small CPU if there is none.

    Args:
        kind: what computes.
        memory: in GiB, as in `Row.memory`.
        cores: of the CPU.
    """
    rows = [each for each in ROWS if each.kind == kind]
    fitting = [each for each in rows if each.memory * _ABOUT <= memory and each.cores <= max(cores, 1)]
    return fitting[-1] if fitting else ROWS[0]
