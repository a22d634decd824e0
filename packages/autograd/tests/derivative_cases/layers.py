"""Products of matrices, convolutions, pools, norms and recurrent layers."""

from __future__ import annotations

import taeda_tensor_core as taeda
from derivative_cases.case import Case
from taeda_tensor_core import ops

LINALG = [
    Case("mm", taeda.mm, ((3, 4), (4, 2))),
    Case("bmm", taeda.bmm, ((2, 3, 4), (2, 4, 2))),
    Case("mv", taeda.mv, ((3, 4), (4,))),
    Case("dot", taeda.dot, ((4,), (4,))),
    Case("matmul", taeda.matmul, ((2, 3, 4), (4, 2))),
    Case("addmm", lambda a, b, c: taeda.addmm(a, b, c, beta=2, alpha=3), ((2,), (3, 4), (4, 2))),
    Case("addmv", lambda a, b, c: taeda.addmv(a, b, c, beta=2, alpha=3), ((3,), (3, 4), (4,))),
    Case("baddbmm", lambda a, b, c: taeda.baddbmm(a, b, c, beta=2), ((2, 3, 2), (2, 3, 4), (2, 4, 2))),
    Case("outer", taeda.outer, ((3,), (4,))),
    Case("linear", ops.linear, ((2, 3), (4, 3), (4,))),
    Case("linear_wide", ops.linear, ((2, 2, 3), (4, 3))),
    Case("einsum", lambda a, b: taeda.einsum("bij,bjk->bik", a, b), ((2, 3, 4), (2, 4, 2))),
    Case("trace", taeda.trace, ((3, 3),)),
]

LAYERS = [
    Case("conv2d", lambda x, w, b: ops.conv2d(x, w, b, (2, 1), (1, 1)), ((2, 2, 5, 4), (3, 2, 3, 3), (3,))),
    Case("conv2d_groups", lambda x, w: ops.conv2d(x, w, None, 1, 1, 1, 2), ((1, 4, 3, 3), (2, 2, 2, 2))),
    Case("conv1d", lambda x, w, b: ops.conv1d(x, w, b, 1, 1), ((2, 2, 5), (3, 2, 3), (3,))),
    Case("conv_transpose2d", lambda x, w: ops.conv_transpose2d(x, w, None, 2), ((1, 2, 3, 3), (2, 2, 2, 2))),
    Case("max_pool2d", lambda x: ops.max_pool2d(x, 2), ((1, 2, 4, 4),)),
    Case("max_pool2d_indices", lambda x: ops.max_pool2d_with_indices(x, 2, 1)[0], ((1, 2, 4, 4),)),
    Case("avg_pool2d", lambda x: ops.avg_pool2d(x, 2, 1), ((1, 2, 4, 4),)),
    Case("adaptive_avg_pool2d", lambda x: ops.adaptive_avg_pool2d(x, (2, 3)), ((1, 2, 5, 4),)),
    Case("adaptive_max_pool2d", lambda x: ops.adaptive_max_pool2d(x, (2, 2))[0], ((1, 2, 5, 4),)),
    Case(
        "batch_norm",
        lambda x, w, b: ops.batch_norm(x, w, b, None, None, True, 0.1, 1e-5),
        ((3, 2, 2, 2), (2,), (2,)),
    ),
    Case("layer_norm", lambda x, w, b: ops.layer_norm(x, (4,), w, b), ((3, 4), (4,), (4,))),
    Case("group_norm", lambda x, w, b: ops.group_norm(x, 2, w, b), ((2, 4, 3), (4,), (4,))),
    Case("batch_norm_plain", lambda x: ops.batch_norm(x, None, None, None, None, True, 0.1, 1e-5), ((4, 3),)),
    Case("lstm_gates", lambda a, b, c: ops.lstm_gates(a, b, c), ((2, 8), (2, 8), (2, 2))),
    Case("gru_gates", lambda a, b, h: ops.gru_gates(a, b, h), ((2, 6), (2, 6), (2, 2))),
    *(
        Case(
            f"lstm_sequence_{r}",
            lambda x, h, c, w, b, r=r: ops.lstm_sequence(x, h, c, w, b, r),
            ((3, 2, 8), (2, 2), (2, 2), (8, 2), (8,)),
        )
        for r in (False, True)
    ),
    Case(
        "gru",
        lambda x, h, a, b: ops.gru(x, h, [a, b], False, 1, 0.0, True, False, False),
        ((2, 2, 3), (1, 2, 2), (6, 3), (6, 2)),
    ),
    Case("rnn_cell", lambda x, h, a, b: ops.rnn_tanh_cell(x, h, a, b), ((2, 3), (2, 4), (4, 3), (4, 4))),
    Case("prelu", ops.prelu, ((3, 4), (4,))),
    Case("glu", lambda x: ops.glu(x, 1)),
    Case("gelu_tanh", lambda x: ops.gelu(x, approximate="tanh")),
    Case("threshold", lambda x: ops.threshold(x, 0.5, 2.0)),
]
