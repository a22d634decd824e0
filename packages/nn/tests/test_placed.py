"""Functions that the provider's declarations place in nn's modules."""

from __future__ import annotations

from types import SimpleNamespace

from taeda_nn import _bind


def test_what_a_provider_places_is_found_by_its_name(monkeypatch):
    def made():
        pass

    monkeypatch.setattr(
        _bind.tensor, "nn", SimpleNamespace(functional=SimpleNamespace(made=made, _own=1)), raising=False
    )
    assert _bind.placed("nn.functional") == {"made": made}
    assert _bind.placed("nn.elsewhere") == {}


def test_a_provider_that_places_nothing():
    assert _bind.placed("nowhere.at_all") == {}
