"""Loading devices: all of a plug-in or nothing, one thread at a time, once more when something has changed."""

from __future__ import annotations

import os
from textwrap import dedent

import pytest
from strangers import abi_version, compile_plugin

GOOD = "from taeda.library import Backend\nbackend = Backend({name!r})\n"

# Asks for a device and says what came of it; the first line of the cause is enough.
ASK = """
    import threading, time
    import taeda

    def ask(name):
        try:
            return str(taeda.empty(1, device=name).device)
        except BaseException as error:
            return f"{type(error).__name__} {error.__cause__}"

    def start(function, *arguments):
        thread = threading.Thread(target=function, args=arguments)
        thread.start()
        return thread
"""


def device(site, name: str, source: str) -> None:
    """A distribution of one device."""
    module = {f"stranger_{name}": source}
    site.install(f"stranger-{name}", {"taeda.backends": {name: f"stranger_{name}"}}, module)


def test_a_device_that_a_broken_plugin_uses_stays(site):
    device(site, "good", GOOD.format(name="good"))
    device(site, "bad", "import taeda\ntaeda.empty(1, device='good')\nraise ValueError('no')")
    program = (
        ASK
        + """
    print(ask("bad"), ask("good"), taeda.backends.names(), sorted(taeda.backends.failures()))
    """
    )
    assert site.lines(program) == ["UnusableDeviceError no good:0 ['cpu', 'meta', 'good'] ['bad']"]


def test_what_a_broken_plugin_loads_by_hand_goes_with_it(site):
    path = str(compile_plugin("device", site.folder / "c", '-DDEVICE_NAME="other"'))
    device(site, "bad", f"import taeda\ntaeda.backends.load({path!r})\nraise ValueError('no')")
    program = (
        ASK
        + f"""
    print(ask("bad"), taeda.backends.names(), hasattr(taeda.ops, "other"))
    taeda.backends.load({path!r})
    print((-taeda.ones(1).to("other")).cpu().tolist(), taeda.ops.other.sum.name)
    """
    )
    assert site.lines(program) == ["UnusableDeviceError no ['cpu', 'meta'] False", "[-1.0] other::sum"]


REPLACES = """
    import taeda
    from taeda.library import Backend, Library

    library = Library("bad")
    library.kernel("relu", "cpu", replace=True)(lambda outputs, inputs: outputs[0].fill_(7))
    library.define("bad::twice(Tensor self) -> Tensor").infer(lambda self: (self.shape, self.dtype))
    backend = Backend("bad")
    raise ValueError("no")
"""


def test_what_a_broken_python_plugin_registered_is_taken_back(site):
    device(site, "bad", dedent(REPLACES))
    program = (
        ASK
        + """
    print(ask("bad"), taeda.relu(taeda.tensor([-1.0, 1.0])).tolist())
    print(hasattr(taeda.ops.bad, "twice"), taeda.backends.names())
    """
    )
    assert site.lines(program) == ["UnusableDeviceError no [0.0, 1.0]", "False ['cpu', 'meta']"]


def test_other_threads_keep_what_they_load_meanwhile(site):
    device(site, "good", GOOD.format(name="good"))
    device(site, "bad", "import sync\nsync.inside.set()\nsync.go_on.wait(60)\nraise ValueError('no')")
    site.install(
        "sync", {}, {"sync": "import threading\ninside, go_on = threading.Event(), threading.Event()"}
    )
    program = (
        ASK
        + """
    import sync
    slow = start(lambda: print(ask("bad")))
    sync.inside.wait(60)
    print(ask("good"))
    sync.go_on.set()
    slow.join()
    print(ask("good"), taeda.backends.names())
    """
    )
    assert site.lines(program) == ["good:0", "UnusableDeviceError no", "good:0 ['cpu', 'meta', 'good']"]


def test_a_device_is_seen_by_others_when_all_of_it_is_there(site):
    source = """
        import numpy as np, sync
        from taeda.library import Backend
        backend = Backend("slow")
        sync.inside.set()
        sync.go_on.wait(60)
        @backend.kernel("copy_same_")
        def copy(outputs, inputs):
            backend.array(inputs[0])[...] = backend.array(inputs[1])
        @backend.kernel("neg")
        def neg(outputs, inputs):
            np.negative(backend.array(inputs[0]), out=backend.array(outputs[0]))
    """
    device(site, "slow", source)
    site.install(
        "sync", {}, {"sync": "import threading\ninside, go_on = threading.Event(), threading.Event()"}
    )
    program = (
        ASK
        + """
    import sync
    found = []
    def use():
        found.append((-taeda.ones(1).to("slow")).cpu().tolist())
    threads = [start(use)]
    sync.inside.wait(60)
    threads += [start(use), start(use)]
    print(taeda.backends.names())
    sync.go_on.set()
    [thread.join() for thread in threads]
    print(found, taeda.backends.names())
    """
    )
    assert site.lines(program) == ["['cpu', 'meta']", "[[-1.0], [-1.0], [-1.0]] ['cpu', 'meta', 'slow']"]


def test_an_interrupted_import_leaves_nothing_and_can_be_repeated(site):
    source = (
        GOOD.format(name="dev") + "import sync\nif sync.first: sync.first = False; raise KeyboardInterrupt\n"
    )
    device(site, "dev", source)
    site.install("sync", {}, {"sync": "first = True"})
    program = (
        ASK
        + """
    print(ask("dev"), taeda.backends.names(), taeda.backends.failures())
    print(ask("dev"), taeda.backends.names())
    """
    )
    assert site.lines(program) == [
        "KeyboardInterrupt None ['cpu', 'meta'] {}",
        "dev:0 ['cpu', 'meta', 'dev']",
    ]


def test_plugins_that_need_each_other_are_told_so(site):
    use = "import taeda\ntaeda.empty(1, device={other!r})\n"
    device(site, "one", use.format(other="two") + GOOD.format(name="one"))
    device(site, "two", use.format(other="one") + GOOD.format(name="two"))
    device(site, "own", use.format(other="own") + GOOD.format(name="own"))
    program = (
        ASK
        + """
    for name in ("one", "own"):
        try:
            taeda.empty(1, device=name)
        except RuntimeError as error:
            print("is asked for while it is being loaded" in str(error))
    """
    )
    assert site.lines(program) == ["True", "True"]


def test_plugins_that_need_each_other_on_two_threads_do_not_hang(site):
    source = "import taeda, sync\nsync.both.wait(60)\ntaeda.empty(1, device={other!r})\n" + GOOD
    device(site, "one", source.format(other="two", name="one"))
    device(site, "two", source.format(other="one", name="two"))
    site.install("sync", {}, {"sync": "import threading\nboth = threading.Barrier(2)"})
    program = (
        ASK
        + """
    threads = [start(ask, name) for name in ("one", "two")]
    [thread.join() for thread in threads]
    print(sorted(taeda.backends.failures()))
    """
    )
    assert site.lines(program) == ["['one', 'two']"]


BROKEN = "from stranger_dev import part\nraise ValueError(part.TEXT)\n"


@pytest.fixture
def package(site):
    """A distribution whose device fails; it consists of two modules."""
    folder = site.folder / "stranger_dev"
    folder.mkdir()
    (folder / "__init__.py").write_text(BROKEN)
    (folder / "part.py").write_text("TEXT = 'old'\n")
    site.install("stranger-dev", {"taeda.backends": {"dev": "stranger_dev"}})
    return site


MEND = """
    import pathlib
    import time
    folder = pathlib.Path("..", "stranger_dev")
    (folder / "__init__.py").write_text("from taeda.library import Backend\\nBackend('dev')\\n")
    (folder / "part.py").write_text("TEXT = 'newer'\\n")
"""


def test_a_failed_device_is_tried_again_when_something_was_installed(package):
    program = (
        ASK
        + """
    print(ask("dev"), ask("dev"))
    """
        + MEND
        + """
    print(ask("dev"))     # nobody has installed anything
    pathlib.Path("..", "another-1.0.dist-info").mkdir()
    time.sleep(0.1)       # the path is looked at again every twentieth of a second
    print(ask("dev"), taeda.backends.failures())
    from stranger_dev import part
    print(part.TEXT)
    """
    )
    assert package.lines(program) == [
        "UnusableDeviceError old UnusableDeviceError old",
        "UnusableDeviceError old",
        "dev:0 {}",
        "newer",
    ]


def test_a_failed_device_is_tried_again_on_request(package):
    program = (
        ASK
        + """
    print(ask("dev"))
    try:
        taeda.backends.retry("dev")
    except RuntimeError as error:
        print(error.__cause__)
    """
        + MEND
        + """
    taeda.backends.retry("dev:0")
    taeda.backends.retry("dev")
    from stranger_dev import part
    print(ask("dev"), taeda.backends.failures(), part.TEXT)
    try:
        taeda.backends.retry("nobody")
    except RuntimeError as error:
        print("unknown device 'nobody'" in str(error))
    """
    )
    assert package.lines(program) == ["UnusableDeviceError old", "old", "dev:0 {} newer", "True"]


def test_a_refused_library_may_be_replaced_by_a_mended_one(site):
    major, minor = abi_version()
    library = compile_plugin("handshake", site.folder / "c", f"-DSTATED_MAJOR={major + 1}u")
    mended = compile_plugin("device", site.folder / "mended", '-DDEVICE_NAME="dev"')
    device(site, "dev", f"__taeda_plugin__ = {str(library)!r}")
    program = (
        ASK
        + f"""
    import os
    print("version {major + 1}.{minor}" in ask("dev"))
    os.replace({str(mended)!r}, {str(library)!r})
    taeda.backends.retry("dev")
    print((-taeda.ones(1).to("dev")).cpu().tolist())
    """
    )
    assert site.lines(program) == ["True", "[-1.0]"]


def test_a_distribution_without_a_name_gets_no_pip_command(site):
    device(site, "dev", "raise ValueError('no')")
    (metadata,) = site.folder.glob("*.dist-info/METADATA")
    metadata.write_text("Metadata-Version: 2.1\n")
    program = """
        import taeda
        for name in ("dev", "nobody"):
            try:
                taeda.device(name)
            except RuntimeError as error:
                print(error)
    """
    failed, unknown = site.lines(program)
    assert failed == "device 'dev' cannot be used, its plug-in failed: ValueError: no"
    offers = unknown.partition("installed plug-ins offer: ")[2].partition(". Expected one of ")[0]
    assert "dev (stranger_dev)" in offers.split(", ")


def test_a_file_of_a_device_that_cannot_be_used_says_so(site):
    device(site, "dev", "raise ValueError('no driver')")
    program = """
        import io, zipfile
        import taeda
        whole = "whole.pt"
        taeda.save(taeda.ones(2), whole)
        moved = io.BytesIO()
        with zipfile.ZipFile(whole) as old, zipfile.ZipFile(moved, "w") as new:
            for name in old.namelist():
                data = old.read(name)
                new.writestr(name, data.replace(b"cpu", b"dev") if name.endswith("data.pkl") else data)
        moved.seek(0)
        try:
            taeda.load(moved)
        except RuntimeError as error:
            print(error)
            print(error.__cause__)
        moved.seek(0)
        print(taeda.load(moved, map_location="cpu").tolist())
    """
    text, cause, values = site.lines(program)
    assert text == (
        "load: the file holds tensors of device 'dev', which is not here; map_location='cpu' loads them to main memory"
    )
    assert cause.startswith("device 'dev' cannot be used, its plug-in failed: ValueError: no driver")
    assert values == "[1.0, 1.0]"


def test_a_library_in_the_working_folder_needs_no_slash(site):
    path = compile_plugin("device", site.folder / "c", '-DDEVICE_NAME="dev"')
    (site.folder / "work").mkdir()
    os.replace(path, site.folder / "work" / "libdev.so")
    program = """
        import taeda
        taeda.backends.load("libdev.so")
        print((-taeda.ones(1).to("dev")).cpu().tolist())
        try:
            taeda.backends.load("libnobody.so")
        except RuntimeError as error:
            print("plug-in 'libnobody.so' cannot be loaded" in str(error))
    """
    assert site.lines(program) == ["[-1.0]", "True"]
