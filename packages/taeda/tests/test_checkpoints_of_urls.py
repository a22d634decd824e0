"""Distributed checkpoints at URLs, through a stand-in for fsspec that keeps files in memory."""

from __future__ import annotations

import io
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import taeda
import taeda.distributed.checkpoint as dcp


class _File(io.BytesIO):
    def __init__(self, files: dict[str, bytes], path: str, mode: str) -> None:
        super().__init__(files[path] if mode == "rb" else b"")
        self._keep = (files, path) if mode == "wb" else None

    def close(self) -> None:
        if self._keep and not self.closed:
            files, path = self._keep
            files[path] = self.getvalue()
        super().close()


class _Memory:
    """What of a file system of fsspec is used."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.options: dict[str, Any] = {}

    def url_to_fs(self, url: str, **options: Any) -> tuple[_Memory, str]:
        kind, _, path = url.partition("://")
        if kind != "kept":
            raise ValueError(f"Protocol not known: {kind}")
        self.options = options
        return self, path

    def unstrip_protocol(self, path: str) -> str:
        return f"kept://{path}"

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        assert exist_ok

    def exists(self, path: str) -> bool:
        return path in self.files

    def open(self, path: str, mode: str) -> _File:
        return _File(self.files, path, mode)

    @property
    @contextmanager
    def transaction(self) -> Iterator[None]:
        before = dict(self.files)
        try:
            yield
        except BaseException:
            self.files.clear()
            self.files.update(before)
            raise


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> _Memory:
    made = _Memory()
    core = types.ModuleType("fsspec.core")
    core.url_to_fs = made.url_to_fs  # type: ignore[attr-defined]
    package = types.ModuleType("fsspec")
    package.core = core  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fsspec", package)
    monkeypatch.setitem(sys.modules, "fsspec.core", core)
    return made


def _state(value: float) -> dict[str, Any]:
    return {"weight": taeda.full((2, 3), value), "step": 7 if value else 0}


def test_writers_and_readers(memory: _Memory) -> None:
    from taeda.distributed.checkpoint._fsspec_filesystem import FsspecReader, FsspecWriter

    writer = FsspecWriter("kept://run/1", overwrite=False, token="secret")
    dcp.save(_state(2.5), storage_writer=writer)
    assert memory.options == {"token": "secret"}
    assert set(memory.files) == {"run/1/.metadata", "run/1/__0_0.distcp"}
    assert writer.storage_meta().checkpoint_id == "kept://run/1"
    found = _state(0.0)
    dcp.load(found, storage_reader=FsspecReader("kept://run/1"))
    assert found["weight"].eq(2.5).all() and found["step"] == 7
    with pytest.raises(dcp.api.CheckpointException, match="already exists"):
        dcp.save(_state(1.0), storage_writer=FsspecWriter("kept://run/1", overwrite=False))
    assert FsspecWriter.validate_checkpoint_id("kept://a") and not FsspecReader.validate_checkpoint_id(
        "other://a"
    )


def test_what_cannot_be_written_leaves_what_was_there(memory: _Memory) -> None:
    dcp.save(_state(1.5), checkpoint_id="kept://run/3")
    before = dict(memory.files)

    class Refusing:
        def __reduce__(self) -> Any:
            raise OSError("no room")

    with pytest.raises(dcp.api.CheckpointException, match="no room"):
        dcp.save({**_state(2.5), "step": Refusing()}, checkpoint_id="kept://run/3")
    assert memory.files == before


def test_urls_choose_them(memory: _Memory) -> None:
    dcp.save(_state(1.5), checkpoint_id="kept://run/2")
    found = _state(0.0)
    dcp.load(found, checkpoint_id="kept://run/2")
    assert found["weight"].eq(1.5).all()
    with pytest.raises(ValueError, match="Protocol not known: other"):
        dcp.save(_state(1.0), checkpoint_id="other://run")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match="pip install fsspec"):
        dcp.save(_state(1.0), checkpoint_id="kept://run")
