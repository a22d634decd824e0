"""Hugging Face's unmodified models on one library: a training step, generated text, saving and loading.

What zoo_worker.py runs for the collection "transformers". Models are tiny and have numbers drawn from the names of
their parameters, in float64.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import zoo_worker
from transformers_families import FAMILIES


def inputs_of(torch: Any, kind: str, config: Any) -> dict[str, Any]:
    """What the model is called with."""
    rng = np.random.default_rng(7)
    ids = torch.from_numpy(rng.integers(3, 99, (2, 12)))
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, 9:] = 0
    images = torch.from_numpy(rng.standard_normal((2, 3, 32, 32)))
    if kind in ("causal", "masked"):
        return {"input_ids": ids, "attention_mask": mask, "labels": ids}
    if kind == "classes":
        return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([0, 1])}
    if kind == "seq2seq":
        return {"input_ids": ids, "attention_mask": mask, "labels": ids[:, :7].contiguous()}
    if kind == "image":
        return {"pixel_values": images, "labels": torch.tensor([0, 1])}
    if kind == "clip":
        ids[:, -1] = 2
        return {"input_ids": ids, "pixel_values": images, "return_loss": True}
    if kind == "speech":
        sound = rng.standard_normal((2, config.num_mel_bins, 2 * config.max_source_positions))
        return {"input_features": torch.from_numpy(sound), "labels": ids[:, :7].contiguous()}
    if kind == "wave":
        return {
            "input_values": torch.from_numpy(rng.standard_normal((2, 600))),
            "labels": ids[:, :4].contiguous(),
        }
    return {"pixel_values": images}


def make(transformers: Any, torch: Any, family: str) -> tuple[Any, str]:
    """The model with weights of its own, in evaluation, and its kind of input."""
    name, kind, options = FAMILIES[family]
    model_class = getattr(transformers, name)
    if family == "detr":
        small = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}
        options = {**options, "backbone_config": transformers.ResNetConfig(**small, out_features=["stage2"])}
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**options)).to(torch.float64)
    zoo_worker.fill(torch, model)
    return model.eval(), kind


@cache
def quiet_transformers() -> Any:
    """The package, which neither asks the network nor prints."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def step(torch: Any, family: str, library: str, folder: str) -> dict[str, Any]:
    """Samples by name, generated tokens, and what comes back from files of this library and of PyTorch."""
    transformers = quiet_transformers()
    place, source = Path(folder, f"{library} {family} files"), Path(folder, f"torch {family} files")
    model, kind = make(transformers, torch, family)
    inputs = inputs_of(torch, kind, model.config)
    result = model(**inputs)
    values = zoo_worker.tensors(torch, result.to_tuple() if hasattr(result, "to_tuple") else result)
    values = [value for value in values if value.is_floating_point()]
    loss = result.loss if getattr(result, "loss", None) is not None else sum((v * v).mean() for v in values)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    found = {f"result {i}": zoo_worker.sample(value) for i, value in enumerate(values)}
    found["norm of the gradients"] = zoo_worker.sample(norm)
    for key, p in model.named_parameters():
        found[f"gradient of {key}"] = zoo_worker.sample(p.grad)
    optimizer.step()
    optimizer.zero_grad()
    tokens = []
    if kind in ("causal", "seq2seq", "speech"):
        first = {k: v for k, v in inputs.items() if k not in ("labels", "attention_mask")}
        for options in ({}, {"num_beams": 2}, {"do_sample": True, "top_k": 1}):
            made = model.generate(**first, max_new_tokens=6, min_new_tokens=6, **options)
            tokens.append(made.tolist())
    model.save_pretrained(place)
    again = type(model).from_pretrained(place, dtype=torch.float64)
    kept = all(
        torch.equal(a, b)
        for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True)
    )
    theirs = type(model).from_pretrained(source, dtype=torch.float64).state_dict()
    for key, p in model.named_parameters():
        found[f"{key} after the step"] = zoo_worker.sample(p)
        found[f"{key} from PyTorch's file"] = zoo_worker.sample(theirs[key])
    return {
        "keys": list(model.state_dict()),
        "text": repr(model),
        "samples": found,
        "tokens": tokens,
        "kept": kept,
    }
