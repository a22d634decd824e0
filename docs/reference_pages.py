"""Writes the reference pages: operators from their declarations, the Python parts from their docstrings."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

from taeda_tensor_core import get_ops_dir

# Packages whose public names get a page each, and the title of the page.
MODULES = {
    "taeda_nn": "taeda.nn",
    "taeda_nn.functional": "taeda.nn.functional",
    "taeda_nn.init": "taeda.nn.init",
    "taeda_nn.utils": "taeda.nn.utils",
    "taeda_optim": "taeda.optim",
    "taeda_optim.lr_scheduler": "taeda.optim.lr_scheduler",
    "taeda_data": "taeda.utils.data",
    "taeda_data.readers": "taeda.data.readers",
    "taeda_data.transforms": "taeda.data.transforms",
    "taeda_distributions": "taeda.distributions",
    "taeda_models": "taeda.models",
    "taeda_multiprocessing": "taeda.multiprocessing",
    "taeda_profiler": "taeda.profiler",
    "taeda_profiler.benchmark": "taeda.utils.benchmark",
    "taeda_profiler.flop_counter": "taeda.utils.flop_counter",
    "taeda_tensor_core.sparse": "taeda.sparse",
    "taeda_autograd": "taeda.autograd",
    "taeda_registry": "taeda_registry",
}


def heading(text: str) -> str:
    """A title in reStructuredText."""
    return f"{text}\n{'=' * len(text)}\n\n"


def block(text: str, directive: str) -> str:
    """Text under a directive, indented."""
    lines = "\n".join(f"   {line}".rstrip() for line in text.strip().splitlines())
    return f"{directive}\n\n{lines}\n\n"


def family_page(family: str, records: list[dict]) -> str:
    """The operators of one family: schema, forms and text, as they are declared."""
    text = heading(f"Operators: {family}")
    for record in sorted(records, key=lambda record: record["name"]):
        text += f".. rubric:: ``{record['name']}``\n\n" + block(record["schema"], ".. code-block:: text")
        facts = [f"forms: {', '.join(record['forms'])}", f"kind: {record['kind']}"]
        if record["aliases"]:
            facts.append(f"also called: {', '.join(record['aliases'])}")
        text += block("\n".join([record["doc"].strip(), "", *facts]), ".. code-block:: text")
    return text


def module_page(name: str, title: str) -> str:
    """Everything public of one module, from its docstrings."""
    module = importlib.import_module(name)
    public = getattr(module, "__all__", [key for key in vars(module) if not key.startswith("_")])
    text = heading(title) + f"{inspect.getdoc(module) or ''}\n\n"
    for key in sorted(public):
        value = getattr(module, key)
        if inspect.isclass(value):
            text += f".. autoclass:: {value.__module__}.{value.__qualname__}\n   :no-index:\n\n"
        elif (
            inspect.isfunction(value) and "<" not in value.__qualname__
        ):  # what was made by a call has no path
            text += f".. autofunction:: {value.__module__}.{value.__qualname__}\n   :no-index:\n\n"
    return text


def write_pages(folder: Path) -> None:
    """Write all pages and their table of contents."""
    folder.mkdir(parents=True, exist_ok=True)
    records = json.loads(Path(get_ops_dir()).parent.joinpath("ops.json").read_text(encoding="utf-8"))
    families = sorted({record["family"] for record in records})
    pages = {
        f"ops_{family}": family_page(family, [r for r in records if r["family"] == family])
        for family in families
    }
    pages |= {name.replace(".", "_"): module_page(name, title) for name, title in MODULES.items()}
    contents = "".join(f"   {page}\n" for page in pages)
    pages["index"] = heading("Reference") + f".. toctree::\n   :maxdepth: 1\n\n{contents}"
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
