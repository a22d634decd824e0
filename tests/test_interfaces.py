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
