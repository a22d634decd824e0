"""Calls operators with random arguments, most of them wrong: `fuzz.py SEED CALLS DEVICE LOG FIRST`.

Run as a process of its own, because what is looked for is that it dies. The call under way stands in LOG.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from random import Random

import taeda_tensor_core as taeda

REALS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"
DTYPES = [getattr(taeda, name) for name in f"{REALS} complex64 complex128".split()]
SHAPES = [
    (), (0,), (1,), (2,), (3,), (8,), (2, 2), (2, 3), (3, 4), (2, 8), (0, 3), (2, 0), (1, 1, 1), (2, 3, 4), (1, 2, 8),
    (3, 4, 4), (1, 2, 4, 4), (2, 3, 4, 4), (0, 3, 4, 4), (2, 0, 3, 3), (2, 2, 3, 4, 4),
]  # fmt: skip
INTEGERS = [-3, -2, -1, 0, 0, 1, 1, 2, 2, 3, 4, 7, 200]
WIDE = [*INTEGERS, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63)]
NUMBERS = [
    *INTEGERS,
    2**31 - 1,
    2**63 - 1,
    0.5,
    -0.5,
    2.5,
    1e300,
    float("inf"),
    float("-inf"),
    float("nan"),
    True,
]
WORDS = [
    "none",
    "tanh",
    "sum",
    "mean",
    "amax",
    "same",
    "valid",
    "ij",
    "left",
    "contiguous",
    "floor",
    "ij,jk->ik",
    "x",
]
# Their integers are sizes or counts: large ones ask for memory or time that a test does not have.
MODEST = ("arange", "cartesian_prod", "combinations", "matrix_power", "repeat", "tri", "vander", "window")


class Caller:
    """Random arguments of one call; tensors mostly share a shape and a dtype, so that some calls get far."""

    def __init__(self, op, random, device):
        self.op, self.random, self.device = op, random, device
        self.shape, self.dtype = random.choice(SHAPES), random.choice([taeda.float32, *DTYPES])
        modest = any(word in op.name for word in MODEST) or random.random() < 0.8
        self.integers = INTEGERS if modest else WIDE

    def tensor(self):
        random = self.random
        shape = self.shape if random.random() < 0.5 else random.choice(SHAPES)
        dtype = self.dtype if random.random() < 0.7 else random.choice(DTYPES)
        t = taeda.full(shape, random.choice([0, 1, 1, 2, 3, 100]), dtype=dtype)
        if t.dim() > 1 and random.random() < 0.2:
            t = t.transpose(0, -1)
        return t if self.device == "cpu" else t.to(self.device)

    def one(self, kind):
        random = self.random
        if kind == "Tensor":
            return self.tensor()
        if kind == "Operand":
            return self.tensor() if random.random() < 0.7 else random.choice(NUMBERS)
        choices = {
            "int": self.integers, "float": NUMBERS, "Scalar": NUMBERS, "bool": [True, False], "str": WORDS,
            "DType": [None, *DTYPES], "Device": [None, self.device, "meta"], "Generator": [None],
        }  # fmt: skip
        return random.choice(choices[kind])

    def value(self, argument):
        random = self.random
        if argument.optional and not argument.list and random.random() < 0.4:
            return None
        if not argument.list:
            return self.one(argument.type)
        count = random.choice([0, 1, 1, 2, 2, 3, 4])
        return [
            None if argument.optional and random.random() < 0.2 else self.one(argument.type)
            for _ in range(count)
        ]

    def call(self):
        args, kwargs = [], {}
        for argument in self.op.arguments:
            if argument.has_default and self.random.random() < 0.3:
                if not argument.keyword_only:
                    break
                continue
            if argument.keyword_only:
                kwargs[argument.name] = self.value(argument)
            else:
                args.append(self.value(argument))
        return args, kwargs


def shown(value):
    if isinstance(value, taeda.Tensor):
        return f"ones({tuple(value.shape)}, {value.dtype}, strides {tuple(value.stride())})"
    return f"[{', '.join(map(shown, value))}]" if isinstance(value, list) else repr(value)


def main(seed, calls, device, log, first):
    warnings.simplefilter("ignore")
    operators = sorted(taeda.library.operators(), key=lambda op: op.name)
    with Path(log).open("w", encoding="utf-8") as out:
        for at in range(int(first), len(operators)):
            op, random = operators[at], Random(f"{seed} {operators[at].name}")
            for _ in range(int(calls)):
                caller = Caller(op, random, device)
                args, kwargs = caller.call()
                out.seek(0)
                out.truncate()
                text = ", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in kwargs.items())])
                out.write(f"{at} {op.name}({text})")
                out.flush()
                try:
                    op(*args, **kwargs)
                except SystemError:
                    raise
                except Exception:
                    pass  # any refusal is fine


if __name__ == "__main__":
    main(*sys.argv[1:])
