"""The examples in PyTorch's own docstrings, read from the installed library and run on one of the two libraries.

    python docstring_worker.py collect FILE                 # writes the examples of the installed PyTorch
    python docstring_worker.py LIBRARY FILE FOLDER          # runs them; one file of results for each in FOLDER

LIBRARY is torch, or taeda, which then stands under the name torch before anything else is imported. Every example runs
in a process of its own, forked from one that has imported the library, and within a limit of time.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import inspect
import io
import json
import os
import pkgutil
import random
import signal
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np

SECONDS = 20
# Parts whose examples are about other machines, compilers or devices.
LEFT_OUT = (
    "torch._", "torch.ao", "torch.quantization", "torch.distributed", "torch.onnx", "torch.export",
    "torch.mtia", "torch.xpu", "torch.mps", "torch.cuda", "torch.testing._internal", "torch.fx.experimental",
    "torch.package", "torch.compiler.config", "torch.utils.benchmark", "torch.utils.bottleneck",
    "torch.utils.hipify", "torch.nn.quantized", "torch.nn.qat", "torch.nn.quantizable", "torch.nn.intrinsic",
    "torch.contrib", "torch.utils.viz", "torch.utils.model_dump", "torch.utils.data.datapipes", "torch.csrc",
    "torch.include", "torch.bin", "torch.lib",
)  # fmt: skip
# Private modules whose docstrings are shown under public names.
PRIVATE = ("torch._tensor", "torch._lobpcg", "torch._lowrank", "torch._jit_internal", "torch._linalg_utils")


def wanted(name: str) -> bool:
    if name.endswith(".__main__"):
        return False
    return name in PRIVATE or not name.startswith(LEFT_OUT)


def modules(package: str = "torch") -> list[str]:
    """The modules whose docstrings are read."""
    found = [package]
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__, package + "."):
        if not wanted(info.name):
            continue
        with contextlib.suppress(Exception):  # a part that needs what is not installed here
            importlib.import_module(info.name)
            found += modules(info.name) if info.ispkg else [info.name]
    return found


def documented(module: types.ModuleType) -> list[tuple[str, str]]:
    """Full name and docstring of a module, of its classes and functions and of the classes' methods."""
    found = [(module.__name__, module.__doc__ or "")]
    for name, value in vars(module).items():
        home = getattr(value, "__module__", None) or module.__name__
        if isinstance(value, types.ModuleType) or not callable(value) or not str(home).startswith("torch"):
            continue
        found.append((f"{module.__name__}.{name}", getattr(value, "__doc__", None) or ""))
        if inspect.isclass(value):
            for member in dir(value):
                with contextlib.suppress(Exception):
                    text = getattr(value, member).__doc__
                    found.append((f"{module.__name__}.{name}.{member}", text or ""))
    return [(name, text) for name, text in found if isinstance(text, str)]


def blocks(text: str) -> list[str]:
    """The lines after prompts, joined where no output stands between them."""
    found: list[list[str]] = [[]]
    for line in text.expandtabs().splitlines():
        bare = line.strip()
        if bare.startswith((">>> ", "... ")) or bare in (">>>", "..."):
            found[-1].append(bare[4:])
        elif found[-1]:
            found.append([])
    return ["\n".join(lines) for lines in found if lines]


def statements(text: str) -> list[str]:
    """The single statements of an example, those that cannot be read left out."""
    found: list[str] = []
    joined = "\n".join(blocks(text))
    for part in [joined] if readable(joined) else blocks(text):
        for piece in [part] if readable(part) else part.split("\n"):
            if readable(piece):
                found += [ast.unparse(node) for node in ast.parse(piece).body]
    return found


def readable(source: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except SyntaxError:
        return False
    return True


def collect() -> list[dict[str, Any]]:
    """Every example once, under the shortest name that has it."""
    found: dict[str, str] = {}
    for name in [*modules(), *PRIVATE]:
        for full, text in documented(importlib.import_module(name)):
            if ">>>" in text and (text not in found or len(full) < len(found[text])):
                found[text] = full
    examples = [(full, statements(text)) for text, full in found.items()]
    seen, result = set(), []
    for full, lines in sorted(examples):
        if lines and tuple(lines) not in seen:
            seen.add(tuple(lines))
            result.append({"name": full, "statements": lines})
    return result


def described(value: Any) -> Any:
    """What two libraries must agree in: dtype, shape and numbers of tensors, the text of other values."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            numbers = value.detach()
            with contextlib.suppress(Exception):
                numbers = numbers.to_dense()
            kept = None
            if not numbers.is_complex() and numbers.numel() <= 4096:
                with contextlib.suppress(Exception):
                    kept = numbers.to(torch.float64).flatten().tolist()
        return [
            "tensor",
            str(value.dtype).rpartition(".")[2],
            list(value.shape),
            bool(value.requires_grad),
            kept,
        ]
    if isinstance(value, tuple | list):
        return [type(value).__name__, *map(described, value)]
    if isinstance(value, bool | int | float | str | type(None)):
        return value
    return ["object", type(value).__name__]


def namespace(name: str) -> dict[str, Any]:
    """The names that an example may use: those of its own module, and what programs import."""
    import copy
    import math

    torch = importlib.import_module("torch")
    found: dict[str, Any] = {"__name__": "__main__"}
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        with contextlib.suppress(Exception):
            module = importlib.import_module(".".join(parts[:end]))
            found |= {
                k: getattr(module, k)
                for k in dir(module)
                if not k.startswith("_") and not hasattr(builtins, k)
            }
    for alias, path in {"nn": "torch.nn", "F": "torch.nn.functional", "optim": "torch.optim"}.items():
        found[alias] = importlib.import_module(path)
    return found | {
        "torch": torch,
        "np": np,
        "math": math,
        "copy": copy,
        "random": random,
        "os": os,
        "sys": sys,
    }


def run(example: dict[str, Any], seed: int) -> list[Any]:
    """What each statement gives: ["value", text], ["done"], or ["error", class, message]."""
    torch = importlib.import_module("torch")
    names, results = namespace(example["name"]), []
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    for source in example["statements"]:
        tree = ast.parse(source)
        try:
            if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
                value = eval(compile(source, "<example>", "eval"), names)
                results.append(["value", described(value)])
            else:
                exec(compile(source, "<example>", "exec"), names)
                results.append(["done"])
        except BaseException as error:
            results.append(["error", type(error).__name__, str(error)[:600]])
            if isinstance(error, TimeoutError):
                break
    return results


def too_long(*_: object) -> None:
    raise TimeoutError(f"longer than {SECONDS} seconds")


def in_a_child(example: dict[str, Any], path: Path, seed: int) -> None:
    """Run an example in a forked process, which writes its results; a process that dies leaves that as its result."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            signal.signal(signal.SIGALRM, too_long)
            signal.alarm(SECONDS)
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                quiet = io.StringIO()
                with contextlib.redirect_stdout(quiet), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    results = run(example, seed)
            path.write_text(json.dumps(results), encoding="utf-8")
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if not path.exists():
        path.write_text(json.dumps([["error", "Died", f"wait status {status}"]]), encoding="utf-8")


def main() -> None:
    library, file, *rest = sys.argv[1:]
    if library == "collect":
        import torch

        examples = collect()
        Path(file).write_text(json.dumps(examples), encoding="utf-8")
        return
    if library == "taeda":
        import taeda

        sys.modules["torch"] = taeda
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    for path in ("torch.nn.functional", "torch.optim", "torch.distributions", "torch.utils.data"):
        importlib.import_module(path)
    folder, seed = Path(rest[0]), int(rest[1])
    for number, example in enumerate(json.loads(Path(file).read_text(encoding="utf-8"))):
        in_a_child(example, folder / f"{number}.json", seed)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
