"""Models from a local folder, and weights from local files.

Nothing is fetched: functions that would need the network raise and say which file they looked for. A folder given
to `load` has a file ``hubconf.py`` whose public functions are its entry points. Loading runs that file.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from typing import Any
from urllib.parse import urlparse

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"

_chosen: str | None = None


def _get_torch_home() -> str:
    """The folder of downloads, shared with PyTorch so that files which are there are found."""
    default = os.path.join(os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR), "torch")
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, default))


def get_dir() -> str:
    """The folder in which `load_state_dict_from_url` looks for ``checkpoints``: that of `set_dir`, else PyTorch's."""
    return os.path.join(_get_torch_home(), "hub") if _chosen is None else _chosen


def set_dir(d: str | os.PathLike[str]) -> None:
    """Use another folder."""
    global _chosen
    _chosen = os.path.expanduser(os.fspath(d))


def _hubconf(repo_or_dir: str | os.PathLike[str], source: str, what: str) -> Any:
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: {source!r}. Allowed values: "github" | "local".')
    folder = os.path.expanduser(os.fspath(repo_or_dir))
    if source == "github" and not os.path.isdir(folder):
        raise RuntimeError(
            f"hub.{what}: {repo_or_dir!r} would have to be fetched, which is not offered; clone it and call "
            f"hub.{what}(folder, ..., source='local')"
        )
    path = os.path.join(folder, MODULE_HUBCONF)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"hub.{what}: there is no {path}")
    spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    missing = [name for name in getattr(module, VAR_DEPENDENCY, ()) if not _installed(name)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _check_module_exists(name: str) -> bool:
    """Whether a module could be imported."""
    return _installed(name)


def _installed(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _entry(module: Any, name: str) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(
    github: str | os.PathLike[str], force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
    verbose: bool = True,
) -> Any:  # fmt: skip
    """Names of the entry points of a local folder."""
    module = _hubconf(github, "github", "list")
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(
    github: str | os.PathLike[str], model: str, force_reload: bool = False, skip_validation: bool = False,
    trust_repo: Any = None,
) -> str | None:  # fmt: skip
    """Documentation of an entry point of a local folder."""
    return _entry(_hubconf(github, "github", "help"), model).__doc__


def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call an entry point of a folder's ``hubconf.py``.

    Args:
        repo_or_dir: The folder.
        model: Name of the entry point.
        *args: Its arguments.
        source: 'local'; with 'github' the name must be that of a folder here all the same.
        trust_repo: Accepted, as are `force_reload`, `verbose` and `skip_validation`: nothing is fetched.
        **kwargs: Its arguments by name.

    Raises:
        ValueError: Another source.
        FileNotFoundError: The folder has no ``hubconf.py``.
        RuntimeError: It would have to be fetched; a package that it needs is missing; or it has no such entry point.

    Example:
        >>> model = taeda.hub.load("checkout/of/models", "resnet18", source="local")
    """
    return _entry(_hubconf(repo_or_dir, source, "load"), model)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Raises RuntimeError: nothing is fetched.

    A ``file:`` URL is copied.
    """
    parts = urlparse(url)
    if parts.scheme != "file":
        raise RuntimeError(f"hub.download_url_to_file: {url} is not fetched; download it yourself to {dst}")
    import shutil
    from urllib.request import url2pathname

    shutil.copyfile(url2pathname(parts.path), dst)
    _check_hash(dst, hash_prefix)


def _check_hash(path: str, prefix: str | None) -> None:
    if prefix is None:
        return
    import hashlib

    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not digest.startswith(prefix):
        raise RuntimeError(f'invalid hash value (expected "{prefix}", got "{digest}") of {path}')


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Load a file that was downloaded before: that of the URL's last part, below `model_dir`.

    Args:
        url: Where it came from; a ``file:`` URL names the file itself.
        model_dir: Folder; by default ``checkpoints`` in `get_dir()`, as PyTorch's.
        map_location: As in `taeda.load`.
        progress: Accepted.
        check_hash: The file's name holds the beginning of its SHA-256 sum, which must be right.
        file_name: Its name in the folder, when it is not that of the URL.
        weights_only: Accepted: no code of the file is run in any case.

    Raises:
        RuntimeError: The file is not there (nothing is fetched), or its sum is wrong.
    """
    from taeda_registry.slots import tensor

    parts = urlparse(url)
    name = file_name or os.path.basename(parts.path)
    if parts.scheme == "file":
        from urllib.request import url2pathname

        path = url2pathname(parts.path)
    else:
        path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), name)
    if not os.path.isfile(path):
        raise RuntimeError(
            f"hub.load_state_dict_from_url: {url} is not fetched; download it yourself to {path}"
        )
    if check_hash:
        found = HASH_REGEX.search(name)
        _check_hash(path, found[1] if found else None)
    return tensor.load(path, map_location=map_location)


def __getattr__(name: str) -> Any:
    """`tqdm`, which programs take from here."""
    if name != "tqdm":
        raise AttributeError(f"module 'taeda.hub' has no attribute {name!r}")
    from tqdm import tqdm

    return tqdm
