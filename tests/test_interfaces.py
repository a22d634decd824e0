"""First-party providers offer everything their slots' interfaces ask for."""

from __future__ import annotations

import pytest

import taeda_registry
from taeda_registry.interface import interface


@pytest.mark.parametrize("slot", taeda_registry.slot_names())
def test_first_party_provider_is_complete(slot):
    assert interface(slot).missing(taeda_registry.resolve(slot)) == []


@pytest.mark.parametrize("slot", taeda_registry.slot_names())
def test_first_party_provider_states_its_interface(slot):
    module = taeda_registry.resolve(slot)
    assert module.__taeda_interface__[slot] == taeda_registry.get_slot(slot).interface_text


def test_the_stubs_name_every_family_of_nn():
    """What type checkers see of taeda.nn and taeda.nn.functional is what their packages gather."""
    import re
    from pathlib import Path

    import taeda
    import taeda_nn

    ours, theirs = (Path(module.__file__).parent for module in (taeda, taeda_nn))
    pairs = {
        ours / "nn/modules/__init__.pyi": theirs / "modules/__init__.py",
        ours / "nn/functional.pyi": theirs / "functional/__init__.py",
    }
    for stub, package in pairs.items():
        lines = re.findall(r"^from .* import \*$", package.read_text(encoding="utf-8"), re.MULTILINE)
        assert lines
        assert set(lines) <= set(stub.read_text(encoding="utf-8").splitlines())
