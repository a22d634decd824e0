"""Broken strangers break nothing but themselves, and each shows its own cause when its slot is asked for."""

from __future__ import annotations

import pytest

SLOTS = ("tensor", "autograd", "nn", "optim", "data", "multiprocessing", "profiler")

# What is wrong: the module's source (None: there is none), and words that the error must have.
FAULTS = {
    "raises": (
        "raise ValueError('licence expired')",
        ["ProviderFailedError", "ValueError", "licence expired"],
    ),
    "exits": (
        "import sys; sys.exit('no device found')",
        ["ProviderFailedError", "SystemExit", "no device found"],
    ),
    "unreadable": ("def (:", ["ProviderFailedError", "SyntaxError"]),
    "needs_module": ("import a_library_nobody_has", ["ProviderFailedError", "a_library_nobody_has"]),
    "needs_library": (
        "import ctypes; ctypes.CDLL('libnobody.so.9')",
        ["ProviderFailedError", "libnobody.so.9"],
    ),
    "nowhere": (None, ["ProviderNotFoundError", "--force-reinstall stranger-{slot}-nowhere"]),
    "other_major": ("__taeda_interface__ = {{'{slot}': '2.0'}}", ["InterfaceMismatchError", "2.0", "1.0"]),
    "old_major": (
        "__taeda_interface__ = {{'{slot}': '0.9'}}",
        ["InterfaceMismatchError", "0.9", "stranger-{slot}"],
    ),
    "no_version": ("__taeda_interface__ = {{'{slot}': 'new'}}", ["InterfaceMismatchError", "'new'"]),
}

EVERYTHING = """
    import taeda
    from taeda.utils.data import DataLoader, TensorDataset

    model = taeda.nn.Linear(2, 1)
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in DataLoader(TensorDataset(taeda.ones(4, 2)), batch_size=2):
        model(x).sum().backward()
        optimizer.step()
    print(taeda.autograd.grad(model(x).sum(), [model.weight])[0].tolist())
"""

ASK = """
    import warnings
    import taeda, taeda_registry

    # nn works without gradients, and says why there are none.
    warnings.filterwarnings("ignore", "nn: without gradients, because slot 'autograd'", RuntimeWarning)
    try:
        taeda_registry.resolve({slot!r})
    except taeda_registry.RegistryError as error:
        print(type(error).__name__, "|", error, "|", repr(error.__cause__))
    for other in {others!r}:
        print(taeda_registry.resolve(other).__name__)
"""


def install_all(site):
    """Every fault for every slot."""
    for slot in SLOTS:
        for name, (source, _) in FAULTS.items():
            site.provider(slot, name, source and source.format(slot=slot))


def test_broken_strangers_that_nobody_chose_are_not_noticed(site):
    install_all(site)
    assert site.lines(EVERYTHING) == ["[[2.0, 2.0]]"]


def test_importing_taeda_looks_for_nobody(site):
    install_all(site)
    program = """
        import importlib.metadata, sys

        def forbidden(*_args, **_options):
            raise AssertionError("entry points were looked up")

        importlib.metadata.entry_points = forbidden
        import taeda
        taeda.ones(2) + 1
        print([name for name in sys.modules if name.startswith("stranger")])
    """
    assert site.lines(program) == ["[]"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("slot", SLOTS)
def test_a_broken_choice_shows_its_own_cause(site, slot, fault):
    source, words = FAULTS[fault]
    site.provider(slot, fault, source and source.format(slot=slot))
    # What stands on tensors cannot be had without them.
    others = [other for other in SLOTS if other != slot] if slot != "tensor" else []
    lines = site.lines(ASK.format(slot=slot, others=others), **{f"TAEDA_{slot.upper()}": fault})
    for word in (f"slot '{slot}'", f"TAEDA_{slot.upper()}", "pip install ", *words):
        if word.startswith("TAEDA_") and "Mismatch" in lines[0]:
            continue
        assert word.format(slot=slot) in lines[0], lines[0]
    assert lines[1:] == [{"tensor": "taeda_tensor_core"}.get(other, f"taeda_{other}") for other in others]


@pytest.mark.parametrize("fault", ["raises", "needs_module", "nowhere", "other_major"])
def test_the_cause_is_shown_through_taeda_too(site, fault):
    source, words = FAULTS[fault]
    site.provider("optim", fault, source and source.format(slot="optim"))
    program = """
        import taeda
        print(tuple(taeda.nn.Linear(1, 1)(taeda.zeros(1)).shape))
        try:
            taeda.optim.SGD
        except ImportError as error:
            print(type(error).__name__, error)
    """
    first, second = site.lines(program, TAEDA_OPTIM=fault)
    assert first == "(1,)"
    for word in words:
        assert word.format(slot="optim") in second


def test_a_failed_choice_is_asked_again_and_fails_again(site):
    site.provider("optim", "raises", FAULTS["raises"][0])
    program = """
        import taeda_registry
        for _ in range(2):
            try:
                taeda_registry.resolve("optim")
            except taeda_registry.ProviderFailedError as error:
                print(error.__cause__)
    """
    assert site.lines(program, TAEDA_OPTIM="raises") == ["licence expired"] * 2


def test_two_providers_of_one_slot_are_chosen_by_name(site):
    for name in ("first", "second"):
        site.provider("optim", name, f"NAME = {name!r}")
    program = "import taeda; print(taeda.optim.NAME)"
    assert site.lines(program, TAEDA_OPTIM="first") == ["first"]
    assert site.lines(program, TAEDA_OPTIM="second") == ["second"]


def test_two_distributions_with_one_name_are_an_error_that_names_both(site):
    for distribution in ("lion-here", "lion-there"):
        module = distribution.replace("-", "_")
        site.install(distribution, {"taeda.components": {"optim.lion": module}}, {module: ""})
    program = """
        import taeda
        try:
            taeda.optim.SGD
        except Exception as error:
            print(type(error).__name__, error)
        print((taeda.ones(1) + 1).item())
    """
    lines = site.lines(program, TAEDA_OPTIM="lion")
    assert all(
        word in lines[0] for word in ("RegistryError", "more than once", "lion-here 1.2", "lion-there 1.2")
    )
    assert lines[1] == "2.0"


def test_a_module_name_decides_between_them(site):
    for distribution in ("lion-here", "lion-there"):
        module = distribution.replace("-", "_")
        site.install(
            distribution, {"taeda.components": {"optim.lion": module}}, {module: f"NAME = {module!r}"}
        )
    assert site.lines("import taeda; print(taeda.optim.NAME)", TAEDA_OPTIM="lion_there") == ["lion_there"]


MISSING = [
    ("tensor", "taeda_tensor_core", "taeda.ones(1)", "pip install taeda-tensor-core"),
    ("nn", "taeda_nn", "taeda.nn.Linear", "pip install taeda-nn"),
    ("optim", "taeda_optim", "taeda.optim.SGD", "pip install taeda-optim"),
    ("data", "taeda_data", "import taeda.utils.data", "pip install taeda-data"),
    (
        "multiprocessing",
        "taeda_multiprocessing",
        "taeda.ones(1).share_memory_()",
        "pip install taeda-multiprocessing",
    ),
    ("profiler", "taeda_profiler", "taeda.profiler", "pip install taeda-profiler"),
    ("profiler", "taeda_profiler", "taeda.autograd.profiler", "pip install taeda-profiler"),
    ("autograd", "taeda_autograd", "taeda.autograd.grad", "pip install taeda-autograd"),
    ("autograd", "taeda_autograd", "taeda.ones(1).requires_grad_()", "pip install taeda-autograd"),
    ("autograd", "taeda_autograd", "taeda.ones(1).backward()", "pip install taeda-autograd"),
]


@pytest.mark.parametrize(("slot", "module", "program", "remedy"), MISSING)
def test_a_missing_package_is_named_with_the_command_that_helps(site, slot, module, program, remedy):
    site.missing.append(module)
    result = site.run(f"import taeda\ntry:\n    {program}\nexcept Exception as error:\n    print(error)")
    assert result.returncode == 0, result.stderr
    assert remedy in result.stdout


def test_without_autograd_arrays_and_inference_work(site):
    site.missing.append("taeda_autograd")
    program = """
        import taeda
        model = taeda.nn.Linear(2, 1)
        print((taeda.ones(2) + 1).tolist(), tuple(model(taeda.ones(3, 2)).shape))
    """
    assert site.lines(program) == ["[2.0, 2.0] (3, 1)"]


def test_listing_shows_broken_strangers_without_loading_them(site):
    install_all(site)
    program = """
        import sys
        from taeda_registry.__main__ import main
        main(["list"])
        print([name for name in sys.modules if name.startswith("stranger")])
    """
    lines = site.lines(program)
    assert sum("stranger-" in line for line in lines) == len(SLOTS) * len(FAULTS)
    assert lines[-1] == "[]"


@pytest.mark.parametrize("text", ["[taeda.components", "optim.x stranger", "[taeda.components]\noptim.x\n"])
def test_unreadable_metadata_breaks_nothing_else(site, text):
    site.provider("optim", "good", "NAME = 'good'")
    site.install("broken-metadata", {})
    (site.folder / "broken_metadata-1.2.dist-info" / "entry_points.txt").write_text(text)
    assert site.lines(EVERYTHING) == ["[[2.0, 2.0]]"]
    result = site.run("import taeda; print(taeda.optim.NAME)", TAEDA_OPTIM="good")
    assert result.stdout.split() == ["good"], result.stderr
