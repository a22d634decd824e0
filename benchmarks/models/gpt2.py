"""GPT-2 small: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019."""

from __future__ import annotations

from typing import Any

import numpy as np

from models._networks import networks

VOCABULARY, FEATURES, LAYERS, HEADS = 50257, 768, 12, 12
BATCH, LENGTH = 1, 128


def build(torch: Any, dropout: float = 0.1) -> Any:
    """The language model of the small size."""
    module = networks(torch)
    drops = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), dropout)
    config = module.GPT2Config(VOCABULARY, n_embd=FEATURES, n_layer=LAYERS, n_head=HEADS, **drops)
    return module.GPT2LMHeadModel(config)


def make_batch(torch: Any, rng: np.random.Generator) -> tuple:
    """Random tokens, and the same one place later."""
    tokens = torch.from_numpy(rng.integers(0, VOCABULARY, (BATCH, LENGTH + 1)))
    return (tokens[:, :-1],), tokens[:, 1:]


def loss(torch: Any, output: Any, target: Any) -> Any:
    """Cross-entropy of the next tokens."""
    return torch.nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def make_optimizer(torch: Any, model: Any) -> Any:
    """AdamW in its fused form, PyTorch's fastest."""
    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
