"""Gradients need the autograd slot, which belongs to the tensor slot's provider."""

import taeda_registry

taeda_registry.resolve("autograd")
