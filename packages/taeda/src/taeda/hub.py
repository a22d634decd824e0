"""Models from folders and from repositories of GitHub, and weights by their URL.

A repository or folder has a file ``hubconf.py`` whose public functions are its entry points; loading runs that file.
What was fetched is kept below `get_dir`, the folder that PyTorch uses, and is not fetched again.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import sys
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from taeda import _hub_fetch

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

ENV_GITHUB_TOKEN = "GITHUB_TOKEN"
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
MODULE_HUBCONF = "hubconf.py"
READ_DATA_CHUNK = _hub_fetch.CHUNK
VAR_DEPENDENCY = "dependencies"
# Their repositories are run without a question.
_TRUSTED_REPO_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")

_chosen: str | None = None


def _get_torch_home() -> str:
    """The folder of downloads, shared with PyTorch so that files which are there are found."""
    default = os.path.join(os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR), "torch")
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, default))


def get_dir() -> str:
    """The folder of repositories and, in ``checkpoints``, of weights: that of `set_dir`, else PyTorch's."""
    return os.path.join(_get_torch_home(), "hub") if _chosen is None else _chosen


def set_dir(d: str | os.PathLike[str]) -> None:
    """Use another folder."""
    global _chosen
    _chosen = os.path.expanduser(os.fspath(d))


def _git_archive_link(repo_owner: str, repo_name: str, ref: str) -> str:
    return f"https://github.com/{repo_owner}/{repo_name}/zipball/{ref}"


def _parse_repo_info(github: str) -> tuple[str, str, str]:
    """Owner, name and branch of ``owner/name[:ref]``; without a ref, ``main`` where there is one, else ``master``."""
    info, _, ref = github.partition(":")
    parts = info.split("/")
    if len(parts) != 2 or not all(parts):
        raise ValueError(f"hub: expected 'owner/name' or 'owner/name:ref', found {github!r}")
    owner, name = parts
    return owner, name, ref or _default_branch(owner, name)


def _default_branch(owner: str, name: str) -> str:
    try:
        with urlopen(f"https://github.com/{owner}/{name}/tree/main/"):
            return "main"
    except HTTPError as error:
        if error.code == 404:
            return "master"
        raise
    except URLError as error:
        for ref in ("main", "master"):
            if os.path.exists(os.path.join(get_dir(), f"{owner}_{name}_{ref}")):
                return ref
        raise RuntimeError(
            "It looks like there is no internet connection and the "
            f"repo could not be found in the cache ({get_dir()})"
        ) from error


def _names_of_refs(url: str) -> Iterator[dict[str, Any]]:
    """Branches or tags as GitHub lists them, page by page; without the token where that is refused."""
    headers = {"Accept": "application/vnd.github.v3+json"}
    if token := os.environ.get(ENV_GITHUB_TOKEN):
        headers["Authorization"] = f"token {token}"
    page = 1
    while True:
        request = Request(f"{url}?per_page=100&page={page}", headers=headers)
        try:
            with urlopen(request) as answer:
                found = json.load(answer)
        except HTTPError:
            if headers.pop("Authorization", None) is None:
                raise
            continue
        if not found:
            return
        yield from found
        page += 1


def _validate_not_a_forked_repo(repo_owner: str, repo_name: str, ref: str) -> None:
    """Raises ValueError where GitHub would give a commit of somebody's fork under the owner's name."""
    for kind in ("branches", "tags"):
        for found in _names_of_refs(f"https://api.github.com/repos/{repo_owner}/{repo_name}/{kind}"):
            if found["name"] == ref or found["commit"]["sha"].startswith(ref):
                return
    raise ValueError(
        f"Cannot find {ref} in https://github.com/{repo_owner}/{repo_name}. "
        "If it's a commit from a forked repo, please call hub.load() with forked repo directly."
    )


def _check_repo_is_trusted(
    repo_owner: str, repo_name: str, owner_name_branch: str, trust_repo: bool | str | None
) -> None:
    """Asks whether a repository may run here, unless it is trusted already, and notes that it is."""
    notes = os.path.join(get_dir(), "trusted_list")
    owner_name = f"{repo_owner}_{repo_name}"
    known: set[str] = set()
    if os.path.exists(notes):
        with open(notes, encoding="utf-8") as file:
            known = {line.strip() for line in file}
    trusted = (
        owner_name in known
        or os.path.isdir(os.path.join(get_dir(), owner_name_branch))
        or repo_owner in _TRUSTED_REPO_OWNERS
    )
    if trust_repo is False or (trust_repo in ("check", None) and not trusted):
        answer = input(
            f"The repository {owner_name} does not belong to the list of trusted repositories and as such cannot be "
            "downloaded. Do you trust this repository and wish to add it to the trusted list of repositories (y/N)?"
        ).lower()
        if answer in ("n", "no", ""):
            raise Exception("Untrusted repository.")  # the class that programs know
        if answer not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {answer}.")
    if not trusted:
        with open(notes, "a", encoding="utf-8") as file:
            file.write(owner_name + "\n")


def _get_cache_or_reload(
    github: str | os.PathLike[str],
    force_reload: bool,
    trust_repo: bool | str | None,
    verbose: bool = True,
    skip_validation: bool = False,
) -> str:
    """The folder of a repository, fetched if it is not there yet."""
    os.makedirs(get_dir(), exist_ok=True)
    owner, name, ref = _parse_repo_info(os.fspath(github))
    branch = ref.replace("/", "_")
    folder = os.path.join(get_dir(), f"{owner}_{name}_{branch}")
    _check_repo_is_trusted(owner, name, os.path.basename(folder), trust_repo)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    if not skip_validation:
        _validate_not_a_forked_repo(owner, name, ref)
    archive = os.path.join(get_dir(), f"{branch}.zip")
    try:
        _fetch_archive(owner, name, ref, archive)
        _hub_fetch.unpack_repository(archive, folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(archive)
    return folder


def _fetch_archive(owner: str, name: str, ref: str, path: str) -> None:
    url = _git_archive_link(owner, name, ref)
    sys.stdout.write(f'Downloading: "{url}" to {path}\n')
    try:
        download_url_to_file(url, path, progress=False)
    except HTTPError as error:
        if error.code != 300:
            raise
        # GitHub's answer for a name that a branch and a tag have; git takes the branch, too.
        warnings.warn(
            f"The ref {ref} is ambiguous. Perhaps it is both a tag and a branch in the repo? It is taken for a branch; "
            "say refs/heads/branch_name or refs/tags/tag_name, perhaps with skip_validation=True.",
            stacklevel=5,
        )
        download_url_to_file(_git_archive_link(owner, name, f"refs/heads/{ref}"), path, progress=False)


def _hubconf(folder: str | os.PathLike[str], what: str) -> Any:
    """The module of a folder's ``hubconf.py``."""
    folder = os.path.expanduser(os.fspath(folder))
    path = os.path.join(folder, MODULE_HUBCONF)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"hub.{what}: there is no {path}")
    module = _import_module(MODULE_HUBCONF, path)
    missing = [name for name in getattr(module, VAR_DEPENDENCY, None) or () if not _check_module_exists(name)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _import_module(name: str, path: str | os.PathLike[str]) -> Any:
    """Runs a file as a module of this name, which is not kept among the modules."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _add_to_sys_path(path: str | os.PathLike[str]) -> Iterator[None]:
    path = os.path.expanduser(os.fspath(path))
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


def _check_module_exists(name: str) -> bool:
    """Whether a module could be imported."""
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _entry(module: Any, name: str) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(
    github: str | os.PathLike[str], force_reload: bool = False, skip_validation: bool = False,
    trust_repo: bool | str | None = "check", verbose: bool = True,
) -> Any:  # fmt: skip
    """Names of the entry points of a repository; the arguments are those of `load`.

    Example:
        >>> taeda.hub.list("pytorch/vision")  # doctest: +SKIP
    """
    folder = _get_cache_or_reload(github, force_reload, trust_repo, verbose, skip_validation)
    with _add_to_sys_path(folder):
        module = _hubconf(folder, "list")
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(
    github: str | os.PathLike[str], model: str, force_reload: bool = False, skip_validation: bool = False,
    trust_repo: bool | str | None = "check",
) -> str | None:  # fmt: skip
    """Documentation of an entry point of a repository; the arguments are those of `load`.

    Example:
        >>> print(taeda.hub.help("pytorch/vision", "resnet18"))  # doctest: +SKIP
    """
    folder = _get_cache_or_reload(github, force_reload, trust_repo, True, skip_validation)
    with _add_to_sys_path(folder):
        return _entry(_hubconf(folder, "help"), model).__doc__


def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call an entry point of the ``hubconf.py`` of a repository or folder. This runs code of its author.

    Args:
        repo_or_dir: ``owner/name`` or ``owner/name:ref`` on GitHub, or with `source` 'local' a folder.
        model: Name of the entry point.
        *args: Its arguments.
        source: 'github' or 'local'.
        trust_repo: True runs the repository and notes that it is trusted; False asks on the terminal; 'check' asks
            unless it was trusted or fetched before.
        force_reload: Fetch it again.
        verbose: Say on stderr that a folder is there already.
        skip_validation: Do not ask GitHub whether the ref is the owner's, which somebody's fork could have made.
        **kwargs: Its arguments by name.

    Raises:
        ValueError: Another source, a name that is no ``owner/name``, or a ref that is not the owner's.
        FileNotFoundError: There is no ``hubconf.py``.
        RuntimeError: There is neither a connection nor the repository; a package that it needs is missing; or it has
            no such entry point.

    Example:
        >>> model = taeda.hub.load("checkout/of/models", "resnet18", source="local")  # doctest: +SKIP
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: {source!r}. Allowed values: "github" | "local".')
    if source == "github":
        repo_or_dir = _get_cache_or_reload(repo_or_dir, force_reload, trust_repo, verbose, skip_validation)
    return _load_local(repo_or_dir, model, *args, **kwargs)


def _load_local(hubconf_dir: str | os.PathLike[str], model: str, *args: Any, **kwargs: Any) -> Any:
    """`load` from a folder, which is on the path of imports meanwhile."""
    with _add_to_sys_path(hubconf_dir):
        return _entry(_hubconf(hubconf_dir, "load"), model)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch one file.

    Args:
        url: Where it is.
        dst: Where it goes to. It appears there when it is whole.
        hash_prefix: How its SHA-256 sum must begin.
        progress: Show a bar on stderr.

    Raises:
        urllib.error.URLError: It cannot be reached.
        RuntimeError: Its sum is another; nothing is kept.

    Example:
        >>> taeda.hub.download_url_to_file("https://host/model-5c106cde.pth", "model.pth", "5c106cde")  # doctest: +SKIP
    """
    _hub_fetch.download(url, os.path.expanduser(dst), hash_prefix, progress)


def _is_legacy_zip_format(filename: str) -> bool:
    """Whether a file is an archive with one file in it, as weights were packed before PyTorch 1.6."""
    if not zipfile.is_zipfile(filename):
        return False
    with zipfile.ZipFile(filename) as archive:
        entries = archive.infolist()
    return len(entries) == 1 and not entries[0].is_dir()


def _unpacked(filename: str, folder: str) -> str:
    """The one file of such an archive, unpacked."""
    with zipfile.ZipFile(filename) as archive:
        _hub_fetch.unpack(archive, folder)
        return os.path.join(folder, archive.namelist()[0])


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Load a file that `taeda.load` reads, fetched if it is not there yet.

    Args:
        url: Where it is.
        model_dir: Folder that keeps it; by default ``checkpoints`` in `get_dir()`, as PyTorch's.
        map_location: As in `taeda.load`.
        progress: Show a bar on stderr while it is fetched.
        check_hash: The file's name holds the beginning of its SHA-256 sum, which must be right.
        file_name: Its name in the folder, when it is not that of the URL.
        weights_only: Accepted: no code of the file is run in any case.

    Raises:
        urllib.error.URLError: It is not there and cannot be reached.
        RuntimeError: Its sum is wrong.

    Example:
        >>> address = "https://host/model-5c106cde.pth"
        >>> state = taeda.hub.load_state_dict_from_url(address, check_hash=True)  # doctest: +SKIP
    """
    from taeda_registry.slots import tensor

    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    named = HASH_REGEX.search(name) if check_hash else None
    prefix = named[1] if named else None
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        download_url_to_file(url, path, prefix, progress=progress)
    elif prefix is not None:
        _hub_fetch.check_hash(path, _hub_fetch.hash_of(path), prefix)
    if _is_legacy_zip_format(path):
        path = _unpacked(path, folder)
    return tensor.load(path, map_location=map_location)


def __getattr__(name: str) -> Any:
    """`tqdm`, which programs take from here."""
    if name != "tqdm":
        raise AttributeError(f"module 'taeda.hub' has no attribute {name!r}")
    from tqdm import tqdm

    return tqdm
