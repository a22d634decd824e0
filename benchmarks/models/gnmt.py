"""GNMT v2: Wu et al., "Google's Neural Machine Translation System", 2016, with four layers on each side."""

from __future__ import annotations

from typing import Any

import numpy as np

from models._networks import networks

VOCABULARY, HIDDEN, LAYERS = 4_000, 256, 4
BATCH, SOURCE, TARGET = 16, 20, 20
PAD, SMOOTHING = 0, 0.1
#: Inputs that stay with the host, whatever the device: the lengths.
ON_HOST = (1,)


def build(torch: Any, dropout: float = 0.2) -> Any:
    """Encoder and decoder with a shared embedding; sequences come first by time."""
    return networks(torch).GNMT(VOCABULARY, HIDDEN, LAYERS, dropout, PAD)


def make_batch(torch: Any, rng: np.random.Generator) -> tuple:
    """Random sentences, longest first, and the next tokens to predict."""
    lengths = np.sort(rng.integers(SOURCE // 2, SOURCE + 1, BATCH))[::-1].copy()
    lengths[0] = SOURCE
    source = rng.integers(1, VOCABULARY, (SOURCE, BATCH))
    source[np.arange(SOURCE)[:, None] >= lengths] = PAD
    target = rng.integers(1, VOCABULARY, (TARGET + 1, BATCH))
    inputs = (source, lengths, target[:-1].copy())
    return tuple(torch.from_numpy(part) for part in inputs), torch.from_numpy(target[1:].copy())


def loss(torch: Any, output: Any, target: Any) -> Any:
    """Cross-entropy with label smoothing, padding ignored."""
    return torch.nn.functional.cross_entropy(
        output.view(-1, VOCABULARY), target.view(-1), ignore_index=PAD, label_smoothing=SMOOTHING
    )


def make_optimizer(torch: Any, model: Any) -> Any:
    """Adam."""
    return torch.optim.Adam(model.parameters(), lr=1e-3)
