"""Programs over libraries of layers and losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, filled, numbers


def einops(torch: Any, folder: Path) -> Found:
    """Its functions and layers."""
    from einops import einsum, pack, rearrange, reduce, repeat, unpack
    from einops.layers.torch import EinMix, Rearrange, Reduce

    x = numbers(torch, 2, 4, 6).requires_grad_()
    net = filled(torch, torch.nn.Sequential(
        Rearrange("b (h w) c -> b c h w", h=2), Reduce("b c h w -> b c w", "mean"),
        EinMix("b c w -> b w d", weight_shape="c d", bias_shape="d", c=6, d=3),
    ).double())  # fmt: skip
    y = net(x)
    y.sum().backward()
    packed, shapes = pack([x, x[:, 0]], "b * c")
    return {
        "net": y, "gradient": x.grad, "there": rearrange(x, "b (h w) c -> (b h) w c", w=2), "least": reduce(x,
        "b t c -> b", "min"),
        "more": repeat(x, "b t c -> b t (n c)", n=2), "sum": einsum(x, x, "b i c, b j c -> b i j"),
        "back": unpack(packed, shapes, "b * c"),
    }  # fmt: skip


def pytorch_metric_learning(torch: Any, folder: Path) -> Found:
    """Losses, miners, distances and scores of embeddings."""
    from pytorch_metric_learning import distances, losses, miners, reducers
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator  # noqa: F401

    y = torch.arange(12) % 3
    found: Found = {}
    for name, loss in {
        "triplet": losses.TripletMarginLoss(), "contrastive": losses.ContrastiveLoss(), "ntxent": losses.NTXentLoss(),
        "supcon": losses.SupConLoss(), "circle": losses.CircleLoss(), "multi": losses.MultiSimilarityLoss(),
        "lifted": losses.LiftedStructureLoss(), "npairs": losses.NPairsLoss(), "angular": losses.AngularLoss(),
        "arcface": losses.ArcFaceLoss(3, 6), "cosface": losses.CosFaceLoss(3, 6), "proxy": losses.ProxyAnchorLoss(3, 6),
        "normalized": losses.NormalizedSoftmaxLoss(3, 6), "softtriple": losses.SoftTripleLoss(3, 6),
        "fastap": losses.FastAPLoss(),
        "snr": losses.SignalToNoiseRatioContrastiveLoss(), "vicreg": losses.VICRegLoss(), "margin": losses.MarginLoss(),
    }.items():  # fmt: skip
        x = numbers(torch, 12, 6).requires_grad_()
        filled(torch, loss.double())
        value = loss(x, ref_emb=x.detach() * 0.9) if name == "vicreg" else loss(x, y)
        value.backward()
        found |= {name: value, f"{name} gradient": x.grad}
    x = numbers(torch, 12, 6)
    found["mined"] = [
        *miners.MultiSimilarityMiner()(x, y),
        *miners.BatchHardMiner(distance=distances.LpDistance())(x, y),
    ]
    found["reduced"] = losses.TripletMarginLoss(
        reducer=reducers.AvgNonZeroReducer(), distance=distances.CosineSimilarity()
    )(x, y)
    return found
