"""Programs over libraries of scores, summaries, optimizers and averages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from libraries.common import Found, network, numbers, table
from libraries.training import _lightning


def pytorch_lightning(torch: Any, folder: Path) -> Found:
    """The same under the older name of the package."""
    import pytorch_lightning as L
    from pytorch_lightning.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
    from pytorch_lightning.loggers import CSVLogger

    return _lightning(torch, folder, L, EarlyStopping, LearningRateMonitor, ModelCheckpoint, CSVLogger)


def torchmetrics(torch: Any, folder: Path) -> Found:
    """Metrics that gather over batches, in a collection, and functional ones."""
    import torchmetrics as m
    from torchmetrics.functional import pairwise_cosine_similarity, retrieval_normalized_dcg

    x, y = table(torch)
    scores = network(torch, 8)(x).softmax(1).detach()
    metrics = m.MetricCollection(
        {
            "accuracy": m.Accuracy(task="multiclass", num_classes=3),
            "f1": m.F1Score(task="multiclass", num_classes=3, average="macro"),
            "auroc": m.AUROC(task="multiclass", num_classes=3),
            "matrix": m.ConfusionMatrix(task="multiclass", num_classes=3),
            "calibration": m.CalibrationError(task="multiclass", num_classes=3),
        }
    )
    for begin in range(0, len(x), 10):
        metrics.update(scores[begin : begin + 10], y[begin : begin + 10])
    regression = m.MetricCollection(
        [m.MeanSquaredError(), m.R2Score(), m.PearsonCorrCoef(), m.SpearmanCorrCoef()]
    )
    a, b = numbers(torch, 30), numbers(torch, 30, seed=1)
    image = m.image.StructuralSimilarityIndexMeasure(data_range=1.0)
    pictures = numbers(torch, 2, 3, 24, 24).sigmoid()
    state = metrics.state_dict()
    return {
        **metrics.compute(),
        **regression(a, a + 0.1 * b),
        "ssim": image(pictures, pictures * 0.9),
        "cosine": pairwise_cosine_similarity(x[:5]),
        "ndcg": retrieval_normalized_dcg(a, a > 0),
        "keys": list(state),
    }


def torchinfo(torch: Any, folder: Path) -> Found:
    """Its table of a convolutional network and of a recurrent one."""
    from torchinfo import summary

    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 16, 10),
    )
    text = str(
        summary(
            net,
            input_size=(2, 3, 8, 8),
            verbose=0,
            col_names=("input_size", "output_size", "num_params", "kernel_size", "mult_adds", "trainable"),
        )
    )
    lstm = str(summary(torch.nn.LSTM(4, 6, 2), input_size=(5, 2, 4), verbose=0))
    return {"network": text, "lstm": lstm}


def torchsummary(torch: Any, folder: Path) -> Found:
    """Its table, as printed."""
    import contextlib
    import io

    from torchsummary import summary

    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
    )
    with contextlib.redirect_stdout(io.StringIO()) as out:
        summary(net, (1, 8, 8), device="cpu")
    return {"table": out.getvalue()}


def thop(torch: Any, folder: Path) -> Found:
    """Operations and parameters."""
    from thop import clever_format, profile

    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 5)
    )
    found = profile(net, inputs=(torch.zeros(1, 3, 8, 8),), verbose=False)
    return {"found": list(found), "text": clever_format(found)}


def safetensors(torch: Any, folder: Path) -> Found:
    """Files of tensors and of whole models, with tied weights."""
    from safetensors import safe_open
    from safetensors.torch import load_file, load_model, save, save_file, save_model

    model = network(torch, 8)
    save_file(
        {"a": numbers(torch, 3, 4), "b": torch.arange(5), "c": numbers(torch, 2).bfloat16()},
        folder / "t.safetensors",
    )
    back = load_file(folder / "t.safetensors")
    save_model(model, str(folder / "m.safetensors"), metadata={"by": "a test"})
    other = network(torch, 8)
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    load_model(other, str(folder / "m.safetensors"))
    with safe_open(folder / "t.safetensors", framework="pt") as file:
        part = file.get_slice("a")[1:, :2]
        keys = sorted(file.keys())
    return {
        "back": [back["a"], back["b"], back["c"].float()],
        "part": part,
        "keys": keys,
        "parameters": list(other.parameters()),
        "size": len(save({"a": torch.ones(3)})),
    }


def evaluate(torch: Any, folder: Path) -> Found:
    """A metric of its own classes over tensors."""
    import datasets
    import evaluate as e

    class Mean(e.Metric):
        def _info(self) -> Any:
            features = datasets.Features(
                {"predictions": datasets.Value("float32"), "references": datasets.Value("float32")}
            )
            return e.MetricInfo(description="", citation="", features=features)

        def _compute(self, predictions: Any, references: Any) -> Any:
            return {"mean": float(sum(predictions) - sum(references))}

    metric = Mean(cache_dir=str(folder))
    metric.add_batch(predictions=torch.ones(4), references=torch.arange(4.0))
    return metric.compute()
