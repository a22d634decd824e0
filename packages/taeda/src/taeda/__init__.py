"""taeda: an imperative deep-learning library, composed from the active providers of its slots.

Importing this package loads no provider. The first use of a name loads the tensor slot, and with it automatic
differentiation; ``taeda.nn``, ``taeda.optim``, ``taeda.autograd``, ``taeda.multiprocessing`` and
``taeda.utils.data`` load when used.

Programs written for PyTorch run after ``import taeda as torch``. Libraries that say ``import torch`` themselves find
taeda after ``sys.modules["torch"] = taeda``, with every submodule.
"""

from taeda import _aliases, _names, _reachable

_aliases.install()


def __getattr__(name: str) -> object:
    value = _names.lookup(name)
    if isinstance(value, type(_names)):
        _reachable.reach(value, name)
    # Kept, so that the next use is a plain module attribute.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return _names.listing()
