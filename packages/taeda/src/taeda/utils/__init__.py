"""Home of ``taeda.utils.data``, the provider of slot ``data``."""


def __getattr__(name: str) -> object:
    if name != "data":
        raise AttributeError(f"module 'taeda.utils' has no attribute {name!r}")
    from importlib import import_module

    return import_module("taeda.utils.data")
