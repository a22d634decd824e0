"""How saved bytes get into files: short writes, full disks, interrupts, links, pipes, devices, long names, modes."""

import errno
import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

import taeda_tensor_core as tc
from taeda_registry import files
from taeda_tensor_core.serialization import CheckpointError, load, save
from taeda_testing.settling import descriptors

LARGE = tc.arange(300_000)


class Raw(io.RawIOBase):
    """An unbuffered file that takes at most ``most`` bytes at once."""

    def __init__(self, most):
        self.most, self.data, self.calls = most, bytearray(), 0

    def writable(self):
        return True

    def write(self, part):
        self.calls += 1
        taken = bytes(part[: self.most])
        self.data += taken
        return len(taken)


def reread(data):
    return load(io.BytesIO(bytes(data)))


@pytest.mark.parametrize("most", [1000, 65_536, 2**31])
def test_short_writes_are_gone_on_with(most):
    file = Raw(most)
    save({"x": LARGE, "y": tc.zeros(0)}, file)
    assert reread(file.data)["x"].equal(LARGE)


def test_large_buffers_are_handed_over_in_pieces(monkeypatch):
    monkeypatch.setattr(files, "PIECE", 100_000)
    file = Raw(2**31)
    save({"x": LARGE}, file, format="safetensors")
    assert file.calls == 1 + 24
    assert reread(file.data)["x"].equal(LARGE)


@pytest.mark.parametrize(
    ("answer", "error"), [(0, OSError), (-1, OSError), (10**9, OSError), (None, BlockingIOError)]
)
def test_files_that_take_nothing_are_an_error(answer, error):
    class Full(Raw):
        def write(self, part):
            return answer

    with pytest.raises(error, match="save: the file t"):
        save({"x": LARGE}, Full(1))


def test_writers_that_return_nothing_are_believed():
    class Writer:
        data = b""

        def write(self, part):
            self.data += part

    writer = Writer()
    save({"x": LARGE}, writer)
    assert reread(writer.data)["x"].equal(LARGE)


def test_text_files_are_refused():
    with pytest.raises(TypeError, match="binary file, found StringIO"):
        save({"x": LARGE}, io.StringIO())


class PathWithContents:
    """A path as some packages have them: it reads and writes its file itself, as text."""

    def __init__(self, place):
        self.place = place

    def __fspath__(self):
        return str(self.place)

    def read(self):
        return self.place.read_text()

    def write(self, text):
        self.place.write_text(text)


@pytest.mark.parametrize("name", ["a.pt", "a.safetensors"])
def test_paths_that_read_and_write_by_themselves_are_paths(tmp_path, name):
    path = PathWithContents(tmp_path / name)
    save({"a": tc.arange(3)}, path)
    assert load(path)["a"].tolist() == [0, 1, 2]
    assert load(str(tmp_path / name))["a"].tolist() == [0, 1, 2]


def test_a_socket_takes_everything():
    here, there = socket.socketpair()
    with here, there:
        received = bytearray()

        def receive():
            while part := there.recv(1 << 16):
                received.extend(part)

        thread = threading.Thread(target=receive)
        thread.start()
        with here.makefile("wb", buffering=0) as file:
            save({"x": LARGE}, file)
        here.shutdown(socket.SHUT_WR)
        thread.join()
    assert reread(received)["x"].equal(LARGE)


def test_a_pipe_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    received = []
    thread = threading.Thread(target=lambda: received.append(path.read_bytes()))
    thread.start()
    save({"x": LARGE}, path)
    thread.join()
    assert path.is_fifo()
    assert reread(received[0])["x"].equal(LARGE)


def test_devices_stay_devices_and_say_that_they_are_full():
    save({"x": LARGE}, os.devnull)
    with pytest.raises(OSError, match="No space left"):
        save({"x": LARGE}, "/dev/full")
    assert not os.path.isfile(os.devnull)
    assert not os.path.isfile("/dev/full")


def test_open_descriptors_are_paths_too(tmp_path):
    with open(tmp_path / "gone", "w+b") as file:
        os.unlink(tmp_path / "gone")
        save({"x": LARGE}, f"/proc/self/fd/{file.fileno()}")
        assert load(file)["x"].equal(LARGE)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("present", [True, False])
def test_links_stay_and_what_they_point_to_is_written(tmp_path, present):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    (tmp_path / "link").symlink_to("folder/between")
    (tmp_path / "folder" / "between").symlink_to("target")
    if present:
        target.write_bytes(b"old")
    save({"x": LARGE}, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "between").is_symlink()
    assert load(target)["x"].equal(LARGE)
    assert sorted(p.name for p in (tmp_path / "folder").iterdir()) == ["between", "target"]


def test_circles_of_links_and_folders_are_errors(tmp_path):
    (tmp_path / "a").symlink_to("a")
    with pytest.raises(OSError) as caught:
        save({"x": LARGE}, tmp_path / "a")
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(IsADirectoryError):
        save({"x": LARGE}, tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        save({"x": LARGE}, tmp_path / "nowhere" / "file")
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("kind", [str, os.fsencode])
def test_names_may_be_as_long_as_the_system_allows(tmp_path, kind):
    path = kind(str(tmp_path / ("n" * 255)))
    save({"x": LARGE}, path)
    save({"x": LARGE + 1}, path)
    assert load(path)["x"].equal(LARGE + 1)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_new_files_have_the_mode_of_the_process_which_is_never_changed(tmp_path, monkeypatch, mask):
    before = os.umask(mask)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda _: pytest.fail("the umask belongs to all threads"))
            save({"x": LARGE}, tmp_path / "new")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_private_file_is_never_public_while_it_is_replaced(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o600)
    modes = []
    sync = os.fsync

    def watched(handle):
        modes.extend(p.stat().st_mode & 0o777 for p in tmp_path.iterdir())
        sync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    save({"x": LARGE}, path)
    assert modes == [0o600] * 3  # the old and the new one, then after renaming when the folder is flushed


def test_the_folder_is_flushed_after_renaming(tmp_path, monkeypatch):
    flushed = []
    sync = os.fsync

    def watched(handle):
        flushed.append((os.path.isdir(f"/proc/self/fd/{handle}"), sorted(p.name for p in tmp_path.iterdir())))
        sync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    save({"x": LARGE}, tmp_path / "file")
    assert [folder for folder, _ in flushed] == [False, True]
    assert flushed[1][1] == ["file"]


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken"), KeyboardInterrupt()]
)
def test_whatever_fails_the_old_file_stays_alone(tmp_path, monkeypatch, step, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def failing(*_):
        raise error

    monkeypatch.setattr(*((files, "_all_of") if step == "write" else (os, step)), failing)
    with pytest.raises(type(error)):
        save({"x": LARGE}, path)
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


CHILD = """
import sys, resource, signal
import taeda_tensor_core as tc
from taeda_tensor_core.serialization import save
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    save({"x": tc.arange(300_000)}, sys.argv[1])
except OSError as error:
    print(error)
"""


def test_a_file_that_may_not_grow_leaves_the_old_one(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", CHILD, path], capture_output=True, text=True, check=True)
    assert done.stdout == f"[Errno {errno.EFBIG}] File too large: {str(path)!r}\n"
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_an_empty_file_is_filled_for_those_who_hold_it_open(tmp_path):
    with tempfile.NamedTemporaryFile(dir=tmp_path) as file:
        save({"a": tc.ones(3)}, file.name)
        assert load(file)["a"].tolist() == [1.0, 1.0, 1.0]


def test_an_empty_file_is_empty_after_an_error(tmp_path):
    path = tmp_path / "file"
    path.touch()
    for buffering in (0, 1 << 16):
        with pytest.raises(ZeroDivisionError), files.replacing(path, buffering) as file:
            file.write(b"some of it")
            raise ZeroDivisionError
        assert path.read_bytes() == b"" and os.listdir(tmp_path) == ["file"]


def test_signals_during_a_write_do_not_shorten_the_file():
    handled = []
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(1))
    read, write = os.pipe()
    received = bytearray()

    def receive():
        with open(read, "rb", buffering=0) as file:
            while part := file.read(512):
                received.extend(part)

    thread = threading.Thread(target=receive)
    thread.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        with open(write, "wb", buffering=0) as file:
            save({"x": LARGE}, file)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    thread.join()
    assert handled
    assert reread(received)["x"].equal(LARGE)


def test_nothing_stays_open(tmp_path):
    for _ in range(20):
        save({"x": tc.ones(1)}, tmp_path / "file")
        with pytest.raises(OSError, match="space"):
            save({"x": LARGE}, "/dev/full")
    left = [path for path in descriptors().values() if path == "/dev/full" or path.startswith(str(tmp_path))]
    assert not left


def test_many_small_tensors_are_written_in_linear_time_and_read(tmp_path):
    path = tmp_path / "many.safetensors"
    base = tc.arange(30.0)
    given = [tc.full((1,), float(i)) for i in range(30_000)] + [base[:20], base[10:]]
    tc.save(given, path)
    found = tc.load(path)
    assert [t.item() for t in found[:-2:997]] == [float(i) for i in range(0, 30_000, 997)]
    found[-2][10] = -1.0
    assert found[-1][0] == -1.0  # they share memory again


@pytest.mark.parametrize("weights_only", [True, False])
def test_errors_of_a_file_carry_its_name(tmp_path, weights_only):
    path = tmp_path / "weights.pt"
    save({"a": tc.ones(3), "b": [1, 2]}, path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CheckpointError) as caught:
        load(path, weights_only=weights_only)
    assert str(path) in caught.value.__notes__[0]
