"""One layer of BERT base: Devlin et al., "BERT", 2018."""

from __future__ import annotations

from typing import Any

import numpy as np

from models._networks import networks

FEATURES, BATCH, LENGTH = 768, 1, 128


def build(torch: Any, dropout: float = 0.1) -> Any:
    """Attention of twelve heads and a perceptron of 3072 features."""
    module = networks(torch)
    config = module.BertConfig(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    return module.BertLayer(config)


def make_batch(torch: Any, rng: np.random.Generator) -> tuple:
    """Random features, and others to come near to."""
    x, target = (rng.standard_normal((BATCH, LENGTH, FEATURES), dtype=np.float32) for _ in range(2))
    return (torch.from_numpy(x),), torch.from_numpy(target)


def loss(torch: Any, output: Any, target: Any) -> Any:
    """The mean squared distance."""
    return torch.nn.functional.mse_loss(output, target)


def make_optimizer(torch: Any, model: Any) -> Any:
    """AdamW in its fused form, PyTorch's fastest."""
    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
