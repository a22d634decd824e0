"""Train a network whose matrices are kept in 8 bits: a tensor class of one's own, with `__torch_dispatch__`.

Run as `python examples/wrapping/eight_bits.py`: it fits a small network to a curve, once with plain matrices and once
with these, and prints both losses and the bytes of the matrices.
"""

from __future__ import annotations

import taeda
from taeda import nn

aten = taeda.ops.aten


class EightBits(taeda.Tensor):
    """A matrix of int8 codes, with one scale for each row."""

    @staticmethod
    def __new__(cls, codes, scales):
        return taeda.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=scales.dtype, device=codes.device)

    def __init__(self, codes, scales):
        self.codes, self.scales = codes, scales

    @classmethod
    def of(cls, values):
        """The nearest codes of a matrix of numbers."""
        scales = values.abs().amax(1).clamp(min=1e-12) / 127
        return cls((values / scales[:, None]).round().to(taeda.int8), scales)

    def values(self):
        """The numbers that the codes stand for."""
        return self.codes.to(self.scales.dtype) * self.scales[:, None]

    def __repr__(self):
        return f"EightBits({tuple(self.shape)})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in ANSWERS:
            return ANSWERS[func](func, *args, **(kwargs or {}))
        raise NotImplementedError(f"{cls.__name__}: {func.name()}")


def numbers(tensor):
    """What an operator computes with in the place of an operand."""
    return tensor.values() if isinstance(tensor, EightBits) else tensor


def copied(func, self, **options):
    """`detach`, `clone`: of codes and scales."""
    return EightBits(func(self.codes, **options), func(self.scales, **options))


def computed(func, *args, **options):
    """With the numbers; the result is a plain tensor."""
    return func(*map(numbers, args), **options)


def written(func, self, *args, **options):
    """In place: on the numbers, whose nearest codes are kept."""
    new = EightBits.of(func(self.values(), *map(numbers, args), **options))
    self.codes.copy_(new.codes)
    self.scales.copy_(new.scales)
    return self


ANSWERS = {
    aten.detach.default: copied,
    aten.clone.default: copied,
    aten.t.default: computed,
    aten.mm.default: computed,
    aten.zeros_like.default: computed,
    aten.add_.Tensor: written,
    aten.addcdiv_.default: written,
}


def network():
    """Two layers; the same weights at every call."""
    taeda.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))


def keep_in_eight_bits(model):
    """Puts matrices of 8 bits in the place of the layers' weights."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            layer.weight = nn.Parameter(EightBits.of(layer.weight.detach()))
    return model


def fit(model, steps=200):
    """The loss after some steps of Adam."""
    x = taeda.linspace(-1, 1, 64)[:, None]
    y = (3 * x).sin()
    optimizer = taeda.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    plain, coded = network(), keep_in_eight_bits(network())
    print(f"plain  loss {fit(plain):.5f}, {sum(m.weight.nbytes for m in plain[::2])} bytes")
    weights = [layer.weight for layer in coded[::2]]
    print(f"8 bits loss {fit(coded):.5f}, {sum(w.codes.nbytes + w.scales.nbytes for w in weights)} bytes")


if __name__ == "__main__":
    main()
