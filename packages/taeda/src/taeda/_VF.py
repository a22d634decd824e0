"""Functions under the name by which PyTorch's own layers reach them; programs that copy those layers do so too."""

from taeda._C import _VariableFunctions


def __getattr__(name: str) -> object:
    return getattr(_VariableFunctions, name)
