"""Views, joins, splits and padding."""

from __future__ import annotations

import taeda_tensor_core as taeda
from derivative_cases.case import TWO, Case

SHAPE = [
    Case("view", lambda a: a.view(4, 3)),
    Case("reshape", lambda a: a.t().reshape(12)),
    Case("permute", lambda a: a.permute(2, 0, 1), ((2, 3, 4),)),
    Case("transpose", lambda a: a.transpose(0, 1)),
    Case("select", lambda a: a.select(1, 2)),
    Case("slice", lambda a: a[1:, ::2]),
    Case("slice_negative", lambda a: a[::-1, 3:0:-2]),
    Case("expand", lambda a: a.expand(2, 3, 4)),
    Case("squeeze", lambda a: a.squeeze(), ((3, 1, 4),)),
    Case("unsqueeze", lambda a: a.unsqueeze(1)),
    Case("diagonal", lambda a: a.diagonal(1)),
    Case("diag", lambda a: a.diag(), ((4,),)),
    Case("diag_embed", lambda a: taeda.diag_embed(a)),
    Case("unfold", lambda a: a.unfold(1, 3, 1)),
    Case("as_strided", lambda a: a.as_strided((2, 2), (1, 2), 1)),
    Case("as_strided_overlap", lambda a: a.as_strided((3, 3), (1, 1), 0)),
    Case("as_strided_view", lambda a: a.t().as_strided((2, 3), (4, 1), 2)),
    Case("cat", lambda a, b: taeda.cat([a, b], 1), ((3, 2), (3, 4))),
    Case("stack", lambda a, b: taeda.stack([a, b], 1), TWO),
    Case("split", lambda a: taeda.split(a, 2, 1)),
    Case("chunk", lambda a: taeda.chunk(a, 3)),
    Case("unbind", lambda a: taeda.unbind(a, 1)),
    Case("flip", lambda a: a.flip((0, 1))),
    Case("roll", lambda a: a.roll((1, 2), (0, 1))),
    Case("rot90", lambda a: taeda.rot90(a)),
    Case("repeat", lambda a: a.repeat(2, 1)),
    Case("tile", lambda a: taeda.tile(a, (2, 2))),
    Case("tril", lambda a: a.tril()),
    Case("triu", lambda a: a.triu(1)),
    Case("pad", lambda a: taeda.constant_pad_nd(a, (1, 2, 0, 1), 3.0)),
    Case("pad_crop", lambda a: taeda.constant_pad_nd(a, (-1, 1))),
    Case("movedim", lambda a: a.movedim(0, 1)),
    Case("flatten", lambda a: a.flatten()),
    Case("unflatten", lambda a: a.unflatten(1, (2, 2))),
    Case("clone", lambda a: a.clone()),
    Case("contiguous", lambda a: a.t().contiguous()),
    Case("meshgrid", lambda a, b: taeda.meshgrid(a, b), ((3,), (2,))),
    Case("broadcast_to", lambda a: taeda.broadcast_to(a, (2, 3, 4)), ((3, 1),)),
]
