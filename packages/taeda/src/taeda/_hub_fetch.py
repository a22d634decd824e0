"""How `hub` fetches: files by their URL, and what archives of repositories hold."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sys
import uuid
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO
from urllib.request import Request, urlopen

from taeda_registry import files

CHUNK = 128 * 1024


@contextlib.contextmanager
def _progress(total: int | None, shown: bool) -> Iterator[Callable[[int], Any]]:
    """A function that is told of bytes: a bar of tqdm, or a line of percents without it."""
    if not shown:
        yield lambda count: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        done = 0

        def tell(count: int) -> None:
            nonlocal done
            done += count
            share = f"{100 * done / total:.1f}%" if total else f"{done} bytes"
            sys.stderr.write(f"\r{share}")

        yield tell
        sys.stderr.write("\n")
    else:
        with tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024) as bar:
            yield bar.update


def check_hash(path: str, digest: str, prefix: str | None) -> None:
    """Raises RuntimeError where a SHA-256 sum does not begin with `prefix`."""
    if prefix is not None and not digest.startswith(prefix):
        raise RuntimeError(f'invalid hash value (expected "{prefix}", got "{digest}") of {path}')


def hash_of(path: str) -> str:
    """The SHA-256 sum of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _copy(source: Any, target: BinaryIO, shown: bool) -> str:
    """Writes what an open URL gives, and returns its SHA-256 sum."""
    length = source.headers.get("Content-Length")
    digest = hashlib.sha256()
    with _progress(int(length) if length else None, shown) as tell:
        while chunk := source.read(CHUNK):
            target.write(chunk)
            digest.update(chunk)
            tell(len(chunk))
    return digest.hexdigest()


def download(url: str, target: str, prefix: str | None, shown: bool) -> None:
    """Fetches one file. It gets its name when it is whole and its sum is right, so nothing broken is ever found."""
    with (
        urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source,
        files.replacing(target) as file,
    ):
        check_hash(url, _copy(source, file, shown), prefix)


def _inside(name: str) -> bool:
    """Whether a name of an archive stays in the folder that it is unpacked to, on any system."""
    windows = PureWindowsPath(name)
    return not (windows.drive or windows.root or PurePosixPath(name).is_absolute() or ".." in windows.parts)


def unpack(archive: zipfile.ZipFile, folder: str) -> None:
    """Unpacks an archive. Raises ValueError, before anything is written, where a name leads out of the folder."""
    for name in archive.namelist():
        if not _inside(name):
            raise ValueError(f"hub: the archive entry {name!r} leads out of the folder {folder}")
    archive.extractall(folder)


def unpack_repository(path: str, folder: str) -> None:
    """Unpacks an archive of a repository, whose one folder becomes `folder`, which is replaced."""
    room = Path(f"{folder}.{uuid.uuid4().hex}.partial")
    try:
        with zipfile.ZipFile(path) as archive:
            unpack(archive, str(room))
            top = archive.namelist()[0].split("/")[0]
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(str(room / top), folder)
    finally:
        shutil.rmtree(room, ignore_errors=True)
