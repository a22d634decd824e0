"""Broken device plug-ins break nothing but their device, which shows its own cause each time it is asked for."""

from __future__ import annotations

import subprocess
from importlib.metadata import entry_points

import pytest
from strangers import abi_version, compile_plugin

MAJOR, MINOR = abi_version()
OFFERS = f"offers version {MAJOR}.{MINOR}"
NAME = '-DDEVICE_NAME="mydev"'
LIBRARY = "__taeda_plugin__ = {path!r}"

# What is wrong: the module's source (None: there is none), how its C part is compiled (None: there is none), the type
# of the cause, and words that the error must have.
FAULTS = {
    "raises": ("raise ValueError('licence expired')", None, "ValueError", ["licence expired"]),
    "exits": ("import sys; sys.exit('no device found')", None, "SystemExit", ["no device found"]),
    "unreadable": ("def (:", None, "SyntaxError", ["invalid syntax"]),
    "needs_module": ("import a_library_nobody_has", None, "ModuleNotFoundError", ["a_library_nobody_has"]),
    "needs_library": ("import ctypes; ctypes.CDLL('libnobody.so.9')", None, "OSError", ["libnobody.so.9"]),
    "nowhere": (None, None, "ModuleNotFoundError", ["stranger_mydev"]),
    "no_library": (
        "__taeda_plugin__ = '/nowhere/libmydev.so'",
        None,
        "RuntimeError",
        ["/nowhere/libmydev.so"],
    ),
    "no_plugin": ("__taeda_plugin__ = 3", None, "TypeError", ["expected a path, a capsule"]),
    "registers_nothing": (
        "",
        None,
        "RuntimeError",
        ["stranger-mydev 1.2 was loaded and registered no device"],
    ),
    "half_in_python": (
        "from taeda.library import Backend\nBackend('mydev')\nraise KeyError('halfway')",
        None,
        "KeyError",
        ["halfway"],
    ),
    "half_in_c": (LIBRARY, ("device", NAME, "-DFAILS"), "RuntimeError", ["no licence for this machine"]),
    "other_name": (LIBRARY, ("device", '-DDEVICE_NAME="yourdev"'), "RuntimeError", ["registered no device"]),
    "old_major": (
        LIBRARY,
        ("handshake", f"-DSTATED_MAJOR={MAJOR - 1}u", "-DSTATED_MINOR=9u"),
        "RuntimeError",
        [f"built for version {MAJOR - 1}.9", OFFERS, "pip install --upgrade taeda-handshake"],
    ),
    "new_major": (
        LIBRARY,
        ("handshake", f"-DSTATED_MAJOR={MAJOR + 1}u", "-DSTATED_MINOR=0u"),
        "RuntimeError",
        [f"built for version {MAJOR + 1}.0", OFFERS, "pip install --upgrade taeda-tensor-core"],
    ),
    "new_minor": (
        LIBRARY,
        ("handshake", f"-DSTATED_MINOR={MINOR + 1}u"),
        "RuntimeError",
        [f"built for version {MAJOR}.{MINOR + 1}", OFFERS, "pip install --upgrade taeda-tensor-core"],
    ),
}

ASK = """
    import taeda

    x = taeda.ones(2)
    for ask in (
        lambda: taeda.device("mydev"),
        lambda: taeda.device("mydev:0"),
        lambda: taeda.ones(2, device="mydev"),
        lambda: x.to("mydev"),
        lambda: taeda.nn.Linear(1, 1).to("mydev"),
        lambda: taeda.backends.fallback("mydev", "cpu"),
    ):
        try:
            ask()
        except RuntimeError as error:
            print(type(error.__cause__).__name__, "|", error)
    print(taeda.backends.names(), list(taeda.backends.failures()), (x + 1).tolist())
"""


def install(site, fault: str, name: str = "mydev") -> None:
    """A distribution that offers the device `name` and is broken in this way."""
    source, compiled, *_ = FAULTS[fault]
    path = str(compile_plugin(*compiled[:1], site.folder / fault, *compiled[1:])) if compiled else ""
    modules = {} if source is None else {f"stranger_{name}": source.format(path=path) if compiled else source}
    site.install(f"stranger-{name}", {"taeda.backends": {name: f"stranger_{name}"}}, modules)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_device_shows_its_own_cause(site, fault):
    install(site, fault)
    cause, words = FAULTS[fault][2:]
    *asked, after = site.lines(ASK)
    assert len(asked) == 6 and len(set(asked)) == 1
    assert asked[0].startswith(f"{cause} | device 'mydev' cannot be used, its plug-in failed: {cause}: ")
    for word in (*words, "; try: pip install --upgrade "):
        assert word in asked[0]
    assert after == "['cpu', 'meta'] ['mydev'] [2.0, 2.0]"


def test_a_library_that_lacks_a_library(site):
    helper = site.folder / "libhelper.so"
    source = site.folder / "helper.c"
    source.write_text("int helper(void);\nint helper(void) { return 42; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(helper)], check=True)
    linked = (f"-L{site.folder}", "-lhelper", f"-Wl,-rpath,{site.folder}")
    path = compile_plugin("device", site.folder / "c", NAME, "-DNEEDS_HELPER", *linked)
    source = LIBRARY.format(path=str(path))
    site.install(
        "stranger-mydev", {"taeda.backends": {"mydev": "stranger_mydev"}}, {"stranger_mydev": source}
    )
    assert site.lines("import taeda; print(taeda.ones(2).to('mydev').device)") == ["mydev:0"]
    helper.unlink()
    *asked, _after = site.lines(ASK)
    assert len(set(asked)) == 1
    assert "libdevice.so' cannot be loaded: libhelper.so: cannot open shared object file" in asked[0]
    assert asked[0].endswith("; try: pip install --upgrade --force-reinstall stranger-mydev")


def test_an_entry_point_that_names_no_attribute(site):
    site.install(
        "stranger-mydev", {"taeda.backends": {"mydev": "stranger_mydev:make"}}, {"stranger_mydev": ""}
    )
    *asked, _after = site.lines(ASK)
    assert asked[0].startswith("AttributeError | device 'mydev' cannot be used")
    assert asked[0].endswith("; try: pip install --upgrade --force-reinstall stranger-mydev")


def test_a_function_may_be_named_and_may_give_the_library(site):
    path = compile_plugin("device", site.folder / "c", NAME)
    source = f"def make():\n    return {str(path)!r}\n"
    site.install(
        "stranger-mydev", {"taeda.backends": {"mydev": "stranger_mydev:make"}}, {"stranger_mydev": source}
    )
    assert site.lines("import taeda; print(taeda.ones(2).to('mydev:1').device)") == ["mydev:1"]


def test_broken_devices_that_nobody_asks_for_are_not_noticed(site):
    for number, fault in enumerate(FAULTS):
        install(site, fault, f"dev{number}")
    program = """
        import importlib.metadata, sys

        def forbidden(*_args, **_options):
            raise AssertionError("entry points were looked up")

        importlib.metadata.entry_points = forbidden
        import taeda
        x = taeda.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        taeda.device("cpu"), taeda.device("meta"), x.to("cpu")
        print(x.grad.tolist(), [name for name in sys.modules if name.startswith("stranger")])
    """
    assert site.lines(program) == ["[2.0, 2.0] []"]


def test_a_good_device_beside_broken_ones(site):
    for fault in ("raises", "half_in_c", "nowhere"):
        install(site, fault, f"broken_{fault}")
    path = compile_plugin("device", site.folder / "c", NAME)
    site.install(
        "good-mydev",
        {"taeda.backends": {"mydev": "good_mydev"}},
        {"good_mydev": LIBRARY.format(path=str(path))},
    )
    program = """
        import taeda
        try:
            taeda.device("broken_raises")
        except RuntimeError as error:
            print(error.__cause__)
        x = taeda.ones(2).to("mydev")
        print((-x).cpu().tolist(), taeda.backends.names())
    """
    assert site.lines(program) == ["licence expired", "[-1.0, -1.0] ['cpu', 'meta', 'mydev']"]


def test_two_distributions_offer_one_device(site):
    for distribution in ("here", "there"):
        site.install(f"dev-{distribution}", {"taeda.backends": {"mydev": f"dev_{distribution}"}})
    *asked, after = site.lines(ASK)
    assert len(set(asked)) == 1
    for word in ("several distributions offer it: dev-here 1.2, dev-there 1.2", "pip uninstall"):
        assert word in asked[0]
    assert after == "['cpu', 'meta'] ['mydev'] [2.0, 2.0]"


def test_an_unknown_device_is_told_what_installed_plugins_offer(site):
    program = """
        import taeda
        try:
            taeda.ones(2, device="nobody:1")
        except RuntimeError as error:
            print(error)
        print(taeda.backends.failures())
    """
    here = {
        e.name: f"{e.name} ({e.dist.name} {e.dist.version})" for e in entry_points(group="taeda.backends")
    }

    def text(plugins: dict[str, str]) -> str:
        known = "device: unknown device 'nobody'; known devices: cpu, meta"
        offered = f"; installed plug-ins offer: {', '.join(sorted(plugins.values()))}" if plugins else ""
        names = ", ".join(["cpu", "meta", *sorted(plugins)])
        return f"{known}{offered}. Expected one of {names} device type at start of device string: nobody"

    assert site.lines(program) == [text(here), "{}"]  # other plug-ins stay unloaded
    install(site, "raises", "dev_b")
    install(site, "raises", "dev_a")
    strangers = {name: f"{name} (stranger-{name} 1.2)" for name in ("dev_a", "dev_b")}
    assert site.lines(program) == [text(here | strangers), "{}"]


def test_half_a_device_leaves_nothing_behind_and_can_be_loaded_when_mended(site):
    broken = compile_plugin("device", site.folder / "broken", NAME, "-DFAILS")
    mended = compile_plugin("device", site.folder / "mended", NAME)
    program = f"""
        import taeda
        try:
            taeda.backends.load({str(broken)!r})
        except RuntimeError as error:
            print(error)
        print(taeda.backends.names(), hasattr(taeda.ops, "mydev"), taeda.library.op("neg").kernels())
        taeda.backends.load({str(mended)!r})
        x = taeda.ones(2).to("mydev")
        print((-x).cpu().tolist(), taeda.ops.mydev.sum.name, taeda.library.op("neg").kernels()["mydev"])
    """
    assert site.lines(program) == [
        "plug-in 'mydev': no licence for this machine",
        "['cpu', 'meta'] False {'cpu': 'taeda-tensor-core'}",
        "[-1.0, -1.0] mydev::sum mydev",
    ]


def test_a_slot_and_a_device_of_one_distribution_fail_apart(site):
    points = {
        "taeda.backends": {"mydev": "stranger_dev"},
        "taeda.components": {"optim.mine": "stranger_optim"},
    }
    site.install(
        "stranger-both", points, {"stranger_dev": "raise OSError('dev')", "stranger_optim": "NAME = 'mine'"}
    )
    program = """
        import taeda
        try:
            taeda.device("mydev")
        except RuntimeError as error:
            print(repr(error.__cause__))
        print(taeda.optim.NAME)
    """
    assert site.lines(program, TAEDA_OPTIM="mine") == ["OSError('dev')", "mine"]
