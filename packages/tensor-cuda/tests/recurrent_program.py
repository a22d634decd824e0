"""Recurrent layers of all kinds on a device, beside the cpu in float64; run alone, or imported by programs of tests.

python recurrent_program.py        # on a GPU
TAEDA_CUDA_DRIVER=simulated ...    # on the simulated driver
"""

from __future__ import annotations

import itertools
from typing import Any

import taeda as torch
from taeda import nn

KINDS = ("LSTM", "GRU", "RNN_TANH", "RNN_RELU")
#: layers, both directions, batch first, biases, projected features of an LSTM
SHAPES = (
    (1, False, False, True, 0),
    (2, True, True, False, 0),
    (3, False, True, True, 0),
    (2, True, False, True, 3),
)
NEAR = {torch.float64: 1e-9, torch.float32: 2e-4, torch.float16: 3e-2, torch.bfloat16: 2e-1}
LENGTHS = (2, 6, 3, 3)
FEATURES, HIDDEN, STEPS, BATCH = 4, 5, 6, 4
tried = 0


def layer(
    kind: str, layers: int, both: bool, first: bool, biased: bool, projected: int = 0, **more: Any
) -> Any:
    """A module of a kind."""
    settings = {"bias": biased, "batch_first": first, "bidirectional": both, **more}
    if kind.startswith("RNN"):
        return nn.RNN(FEATURES, HIDDEN, layers, kind[4:].lower(), **settings)
    extra = {"proj_size": projected} if kind == "LSTM" else {}
    return getattr(nn, kind)(FEATURES, HIDDEN, layers, **settings, **extra)


def near(found: Any, expected: Any, dtype: Any, *what: Any) -> None:
    """Fails where two tensors differ."""
    global tried
    tried += 1
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    one, other = found.detach().cpu().double(), expected.detach().cpu().double()
    apart = (one - other).abs().max() if one.numel() else 0.0
    assert apart <= NEAR[dtype] * (1 + other.abs().max()), (what, dtype, apart)


def results(module: Any, given: list[Any], lengths: tuple[int, ...] | None, training: bool) -> list[Any]:
    """Output and states of a module, and gradients of all that goes in where there is training."""
    leaves = [t.detach().requires_grad_(training) for t in given]
    x, states = leaves[0], tuple(leaves[1:])
    if lengths is not None:
        x = nn.utils.rnn.pack_padded_sequence(x, list(lengths), module.batch_first, enforce_sorted=False)
    output, last = module(x, states if len(states) > 1 else states[0])
    output = output if lengths is None else output.data
    found = [output, *(last if isinstance(last, tuple) else (last,))]
    if training:
        module.zero_grad()
        weights = [torch.arange(t.numel(), device=t.device).reshape(t.shape) % 5 - 1.0 for t in found]
        sum((t * w.to(t.dtype)).sum() for t, w in zip(found, weights, strict=True)).backward()
        found += [t.grad for t in leaves] + [p.grad for p in module.parameters()]
    return found


def compare(kind: str, shape: tuple[Any, ...], dtype: Any, lengths: Any, training: bool, flat: bool) -> None:
    """One module on both."""
    layers, both, first, _, projected = shape
    here = layer(kind, *shape).to(dtype)
    there = layer(kind, *shape).to(dtype)
    there.load_state_dict(here.state_dict())
    there.to("cuda")
    if flat:
        there.flatten_parameters()
    count, out = layers * (2 if both else 1), projected if kind == "LSTM" and projected else HIDDEN
    sizes = [(BATCH, STEPS, FEATURES) if first else (STEPS, BATCH, FEATURES), (count, BATCH, out)]
    sizes += [(count, BATCH, HIDDEN)] if kind == "LSTM" else []
    given = [torch.randn(*s).to(dtype) for s in sizes]
    expected = results(here.double(), [t.double() for t in given], lengths, training)
    found = results(there, [t.to("cuda") for t in given], lengths, training)
    assert len(found) == len(expected)
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        near(one, other, dtype, kind, shape, lengths, training, i)
        assert one.dtype == dtype, (kind, one.dtype)


def all_variants(dtypes: Any) -> None:
    """Every kind, shape, and way of giving sequences, in some dtypes."""
    ways = ((None, True), (None, False), (LENGTHS, True), (LENGTHS, False))
    for kind, shape, (lengths, training), dtype in itertools.product(KINDS, SHAPES, ways, dtypes):
        if kind == "LSTM" or not shape[4]:
            compare(kind, shape, dtype, lengths, training, flat=training)


def main() -> None:
    """All of it, and TF32 and dropout, whose results are only near or only some."""
    torch.manual_seed(1)
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=False, allow_tf32=False):
        all_variants((torch.float64, torch.float32, torch.float16, torch.bfloat16))
    before, NEAR[torch.float32] = NEAR[torch.float32], 2e-2
    all_variants((torch.float32,))
    NEAR[torch.float32] = before
    dropped = nn.LSTM(FEATURES, 64, 2, dropout=0.5).to("cuda")
    x = torch.randn(STEPS, BATCH, FEATURES).to("cuda")
    torch.manual_seed(3)
    one = dropped(x)[0]
    torch.manual_seed(3)
    near(dropped(x)[0], one, torch.float64, "dropout, from the same seed")
    assert not torch.equal(dropped(x)[0], one)
    dropped.eval()
    near(dropped(x)[0], dropped(x)[0], torch.float64, "no dropout outside of training")
    print(f"{tried} comparisons of recurrent layers")


if __name__ == "__main__":
    main()
