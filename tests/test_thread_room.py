"""Room for threads' own data: the loader keeps little of it for libraries that come late, all of them together."""

import struct
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

MODULES = ("taeda_tensor_core", "taeda_autograd", "taeda_profiler")
# glibc holds 1,664 bytes ready (rtld.optional_static_tls and reserves); OpenMP and others want their part.
ROOM = 1024
DYNAMIC, THREAD_LOCAL = 2, 7  # PT_DYNAMIC, PT_TLS
FLAGS, STATIC = 30, 0x10  # DT_FLAGS, DF_STATIC_TLS


def reserved_bytes(file: Path) -> int:
    """What a shared object takes of that room, from its headers; one that asks for memory when it needs it, nothing."""
    data = file.read_bytes()
    assert data[:5] == b"\x7fELF\x02", f"{file} is no 64-bit ELF file"
    (headers,) = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    room, static = 0, False
    for at in range(headers, headers + size * count, size):
        (kind,) = struct.unpack_from("<I", data, at)
        offset, in_file, in_memory = struct.unpack_from("<8xQ16xQQ", data, at)
        if kind == THREAD_LOCAL:
            room = in_memory
        elif kind == DYNAMIC:
            entries = struct.iter_unpack("<QQ", data[offset : offset + in_file])
            static = any(tag == FLAGS and value & STATIC for tag, value in entries)
    return room if static else 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")
def test_libraries_leave_room_for_others():
    sizes = {}
    for name in MODULES:
        spec = find_spec(name)  # of the parts that are installed
        if spec is not None and spec.origin is not None:
            files = Path(spec.origin).parent.rglob("*.so")
            sizes |= {f"{name}/{file.name}": reserved_bytes(file) for file in files}
    assert any("libtaeda" in name and size > 0 for name, size in sizes.items()), sizes
    assert sum(sizes.values()) <= ROOM, sizes
