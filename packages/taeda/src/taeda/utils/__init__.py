"""Home of ``taeda.utils.data``, the provider of slot ``data``, and of parts of the tensor slot."""


def __getattr__(name: str) -> object:
    if name not in ("data", "_python_dispatch"):
        raise AttributeError(f"module 'taeda.utils' has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"taeda.utils.{name}")
