"""One training step of other people's models on one library, with weights drawn from the parameters' names.

Run as `python zoo_worker.py LIBRARY COLLECTION FOLDER NAME...`: LIBRARY is torch, or taeda, which then stands under
the name torch before anything else is imported; COLLECTION is torchvision, timm or transformers. For each model FOLDER
gets a file of samples of the results, of all gradients, and of parameters and buffers after the step, in float64.
Models are in evaluation, so that nothing is dropped at random, but for their batch normalisation.
"""

from __future__ import annotations

import gc
import pickle
import sys
import traceback
import warnings
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

BATCH, SAMPLES = 2, 64


def library(name: str) -> Any:
    """The library, which programs then find as torch."""
    if name == "taeda":
        import taeda

        sys.modules["torch"] = taeda
        return taeda
    import torch

    without_compiled_parts(torch)
    return torch


@cache
def without_compiled_parts(torch: Any) -> None:
    """Declares torchvision's compiled operators where its library does not fit this PyTorch: its models need none."""
    import importlib.util

    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        return
    try:
        for path in Path(found.origin).parent.glob("_C*.so"):
            torch.ops.load_library(str(path))
    except OSError:
        for name in ("nms", "qnms"):
            torch.library.define(
                f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )


def make(collection: str, name: str) -> tuple[Any, int]:
    """The model with weights of its own, and the side of images that it takes."""
    if collection == "timm":
        import timm

        name, _, side = name.partition("@")
        return timm.create_model(name, pretrained=False, num_classes=10), int(side or 96)
    import torchvision

    side, options = 64, {}
    if name.startswith("vit_"):
        side = 56 if name.endswith("14") else 64
        options = {"image_size": side}
    elif name == "maxvit_t":
        side = 224
    elif name in ("googlenet", "inception_v3"):
        side = 299 if name == "inception_v3" else 64
        options = {"init_weights": False}
    return torchvision.models.get_model(name, weights=None, **options), side


def fill(torch: Any, model: Any) -> None:
    """Draws all numbers of the state from their names, so that both libraries have the same."""
    for key, value in model.state_dict().items():
        shape = tuple(value.shape)
        if not value.is_floating_point() or ("table" in key and "bias" not in key):
            continue  # counters, and tables that are computed
        rng, size = np.random.default_rng(zlib.crc32(key.encode())), int(np.prod(shape))
        if key.endswith("running_var") or len(shape) <= 1:
            new = 0.5 + 0.1 * rng.random(size)
        else:
            # A short draw, repeated: most of the time would go into drawing.
            new = np.resize(rng.standard_normal(min(size, 100_003)), size) / np.sqrt(size / shape[0])
        value.detach().copy_(torch.from_numpy(new.reshape(shape)))


def tensors(torch: Any, value: Any) -> list[Any]:
    """All tensors of a result."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [item for part in value for item in tensors(torch, part)] if isinstance(value, (list, tuple)) else []
    )


def sample(value: Any) -> tuple[np.ndarray, float] | None:
    """Some of the elements, and the largest magnitude of all."""
    if value is None:
        return None
    numbers = value.detach().numpy().reshape(-1)
    largest = float(np.abs(numbers).max()) if numbers.size else 0.0
    return numbers[:: max(1, numbers.size // SAMPLES)].astype(np.float64), largest


def step(torch: Any, collection: str, name: str) -> dict[str, Any]:
    """Forward, backward and a step of SGD: samples by name, and the state's keys."""
    torch.manual_seed(0)
    model, side = make(collection, name)
    model = model.to(torch.float64)
    fill(torch, model)
    model.eval()
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.train()
    if type(model).__name__ in ("GoogLeNet", "Inception3"):
        model.training = True  # their classifiers halfway
    images = np.random.default_rng(5).standard_normal((BATCH, 3, side, side))
    x = torch.from_numpy(images).requires_grad_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    results = tensors(torch, model(x))
    weights = [torch.from_numpy(np.random.default_rng(9).standard_normal(tuple(r.shape))) for r in results]
    sum((r * w).sum() for r, w in zip(results, weights, strict=True)).backward()
    optimizer.step()
    found = {f"result {i}": sample(result) for i, result in enumerate(results)}
    found["gradient of the images"] = sample(x.grad)
    for key, p in model.named_parameters():
        found[f"gradient of {key}"], found[f"{key} after the step"] = sample(p.grad), sample(p)
    for key, b in model.named_buffers():
        if b.is_floating_point():
            found[f"{key} after the step"] = sample(b)
    return {"keys": list(model.state_dict()), "text": repr(model), "samples": found}


def main() -> None:
    """Writes what every model gives, or its error."""
    chosen, collection, folder, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    torch = library(chosen)
    for name in names:
        try:
            if collection == "transformers":
                import transformers_worker

                content: dict[str, Any] = transformers_worker.step(torch, name, chosen, folder)
            else:
                content = step(torch, collection, name)
        except Exception:
            content = {"error": traceback.format_exc()}
        Path(folder, f"{chosen} {name}").write_bytes(pickle.dumps(content))
        gc.collect()


if __name__ == "__main__":
    main()
