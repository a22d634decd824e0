"""Runs one program of `libraries` on one library and keeps what it found.

    python libraries_worker.py torch|taeda NAME FOLDER

With taeda, taeda stands under the name torch before anything else is imported. FOLDER gets a file of all results as
arrays, numbers and texts, or of the error.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import zoo_worker
from libraries import LIBRARIES


def program(name: str) -> Any:
    """The program of that name."""
    return getattr(import_module(f"libraries.{LIBRARIES[name][1]}"), name)


def plain(torch: Any, value: Any) -> Any:
    """Arrays in the place of tensors, in containers too."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.layout != torch.strided:
            value = value.to_dense()
        value = value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
        return np.array(value.numpy())
    if isinstance(value, dict):
        return {key: plain(torch, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(torch, item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool, np.ndarray, np.generic)):
        return value
    raise TypeError(f"a program gives a {type(value).__name__}")


def main() -> None:
    """Writes what the program found, or its error."""
    chosen, name, folder = sys.argv[1:]
    warnings.simplefilter("ignore")
    os.environ |= {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "YOLO_OFFLINE": "1", "MPLBACKEND": "agg"}
    torch = zoo_worker.library(chosen)
    with tempfile.TemporaryDirectory() as place:
        os.environ |= {"HOME": place, "YOLO_CONFIG_DIR": place}
        os.chdir(place)
        torch.manual_seed(0)
        np.random.seed(0)
        try:
            content: Any = plain(torch, program(name)(torch, Path(place)))
        except Exception:
            content = {"error": traceback.format_exc()}
        os.chdir(folder)
    Path(folder, f"{chosen} {name}").write_bytes(pickle.dumps(content))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
