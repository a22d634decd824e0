"""Where classes and functions of taeda say that they are while it stands under torch's name.

    python homes_worker.py < NAMES

Reads a JSON object from module to names; writes one from full name to home.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import types
import warnings

import taeda

KINDS = (type, types.FunctionType, types.BuiltinFunctionType, functools._lru_cache_wrapper)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.modules["torch"] = taeda
    found = {}
    for name, items in json.load(sys.stdin).items():
        try:
            module = importlib.import_module(name)
        except ImportError:  # test_names.py counts what is missing
            continue
        for item in items:
            value = getattr(module, item, None)
            if isinstance(value, KINDS) and isinstance(value.__module__, str):
                found[f"{name}.{item}"] = value.__module__
    json.dump(found, sys.stdout)
