"""Losses, and the backward operators that have derivatives of their own."""

from __future__ import annotations

import taeda_tensor_core as taeda
from derivative_cases.case import MASK, TWO, Case
from taeda_tensor_core import ops

TARGET = taeda.tensor([0, 3, 1])

LOSS = [
    *(
        Case(f"{name}_{r}", lambda a, b, f=name, r=r: getattr(ops, f)(a, b, r), TWO)
        for name in ("mse_loss", "huber_loss", "smooth_l1_loss", "l1_loss")
        for r in (0, 1, 2)
    ),
    *(Case(f"bce_loss_{r}", lambda a, b, r=r: ops.bce_loss(a, b, r), TWO, 0.1, 0.9) for r in (0, 1, 2)),
    *(
        Case(f"bce_with_logits_{r}", lambda a, b, r=r: ops.bce_with_logits_loss(a, b, r), TWO)
        for r in (0, 1, 2)
    ),
    *(Case(f"nll_loss_{r}", lambda a, r=r: ops.nll_loss(a, TARGET, None, r)) for r in (0, 1, 2)),
    *(
        Case(f"cross_entropy_{r}", lambda a, r=r: ops.cross_entropy_loss(a, TARGET, None, r))
        for r in (0, 1, 2)
    ),
    Case(
        "cross_entropy_weight",
        lambda a: ops.cross_entropy_loss(
            a, TARGET, taeda.tensor([1.0, 2.0, 0.5, 1.5], dtype=taeda.float64), 1, 3, 0.1
        ),
    ),
    Case("kl_div", lambda a: ops.kl_div(a, taeda.full((3, 4), 0.25, dtype=taeda.float64))),
]

BACKWARD = [
    *(
        Case(f"{n}_backward", getattr(ops, f"{n}_backward"), TWO)
        for n in ("hardsigmoid", "hardswish", "logsigmoid", "mish", "sigmoid", "silu", "tanh")
    ),
    *(
        Case(f"{n}_backward", lambda g, x, n=n, a=a: getattr(ops, f"{n}_backward")(g, x, *a), TWO)
        for n, a in {
            "elu": (1.5, 1.0, 1.0),
            "hardtanh": (-1, 1),
            "leaky_relu": (0.1,),
            "log_softmax": (1,),
            "softmax": (1,),
            "shrink": (0.5,),
            "softplus": (1, 20),
            "threshold": (0.1,),
        }.items()
    ),
    Case("gelu_backward", ops.gelu_backward, TWO),
    Case("native_dropout_backward", lambda g: ops.native_dropout_backward(g, MASK, 2.0)),
    *(
        Case(
            f"{n}_backward",
            lambda g, x, y, n=n, a=a: getattr(ops, f"{n}_backward")(g, x, y, 1, *a),
            ((), (3, 4), (3, 4)),
        )
        for n, a in {
            "mse_loss": (),
            "l1_loss": (),
            "huber_loss": (1.0,),
            "smooth_l1_loss": (1.0,),
            "bce_with_logits_loss": (),
        }.items()
    ),
    Case(
        "bce_loss_backward",
        lambda g, x: ops.bce_loss_backward(g, x, taeda.full((3, 4), 0.3, dtype=taeda.float64), 1),
        ((), (3, 4)),
        0.1,
        0.9,
    ),
    Case("lstm_gates_backward", ops.lstm_gates_backward, ((2, 2), (2, 2), (2, 8), (2, 2), (2, 2))),
    Case("gru_gates_backward", ops.gru_gates_backward, ((2, 2), (2, 8), (2, 2))),
    Case(
        "avg_pool2d_backward",
        lambda g: ops.avg_pool2d_backward(
            g, taeda.zeros(1, 1, 4, 4, dtype=taeda.float64), (2, 2), (2, 2), (0, 0), False, True, None
        ),
        ((1, 1, 2, 2),),
    ),
]
