"""The lazy stand-ins of ``taeda_registry.slots``."""

from __future__ import annotations


def test_import_of_a_stand_in_imports_nothing(sandbox):
    sandbox.module("taeda_tensor_core", "raise RuntimeError('imported')")
    shown = sandbox.program(
        """
        import sys
        from taeda_registry.slots import autograd, data, nn, optim, tensor
        heavy = {"importlib.metadata", "dataclasses", "typing", "tomllib", "inspect", "numpy"}
        print(tensor, sorted(heavy & set(sys.modules)), "taeda_tensor_core" in sys.modules)
        """
    )
    assert shown == "<lazy module of slot 'tensor'> [] False"


def test_first_party_resolution_scans_no_entry_points(sandbox):
    sandbox.module("taeda_optim", "NAME = 'first party'")
    shown = sandbox.program(
        "import sys\nfrom taeda_registry.slots import optim\nprint(optim.NAME, 'importlib.metadata' in sys.modules)"
    )
    assert shown == "first party False"


def test_attributes_are_kept_after_first_use(sandbox):
    sandbox.module("taeda_optim", "def __getattr__(name):\n    print('asked', name)\n    return name.upper()")
    shown = sandbox.program("from taeda_registry.slots import optim\nprint(optim.sgd)\nprint(optim.sgd)")
    assert shown.splitlines().count("asked sgd") == 1
    assert shown.splitlines()[-2:] == ["SGD", "SGD"]


def test_stand_in_is_one_object_and_resolves_to_the_real_module(sandbox):
    sandbox.module("taeda_optim", "NAME = 1")
    shown = sandbox.program(
        """
        import taeda_registry.slots as slots
        from taeda_registry.slots import optim
        import taeda_optim
        print(slots.optim is optim, slots.resolve("optim") is taeda_optim, "NAME" in dir(optim), dir(slots))
        """
    )
    assert (
        shown
        == "True True True ['autograd', 'data', 'multiprocessing', 'nn', 'optim', 'profiler', 'resolve', 'tensor']"
    )


def test_a_stand_in_is_stored_by_its_name(sandbox):
    shown = sandbox.program(
        """
        import copy, pickle
        from taeda_registry.slots import optim
        print(pickle.loads(pickle.dumps(optim)) is optim, copy.deepcopy(optim) is optim)
        """
    )
    assert shown == "True True"


def test_submodules_of_a_provider_are_imported_on_demand(sandbox):
    sandbox.module("taeda_nn.__init__")
    sandbox.module("taeda_nn.functional", "def relu(): return 'relu'")
    assert sandbox.program("from taeda_registry.slots import nn; print(nn.functional.relu())") == "relu"


def test_missing_attribute_names_slot_and_module(sandbox):
    sandbox.module("taeda_optim")
    text = sandbox.failure("from taeda_registry.slots import optim; optim.Adamm")
    assert (
        "AttributeError: the provider of slot 'optim', module 'taeda_optim', has no attribute 'Adamm'" in text
    )


def test_hasattr_of_missing_attribute_is_false(sandbox):
    sandbox.module("taeda_optim")
    assert (
        sandbox.program("from taeda_registry.slots import optim; print(hasattr(optim, 'Adamm'))") == "False"
    )


def test_import_of_an_unknown_slot(sandbox):
    text = sandbox.failure("from taeda_registry.slots import optimm")
    assert "ImportError: cannot import name 'optimm' from 'taeda_registry.slots'" in text
