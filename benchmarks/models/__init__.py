"""Networks as ordinary PyTorch programs, for a namespace ``torch`` that either library can be.

Each module has ``build(torch, dropout=...)``, ``make_batch(torch, rng)`` giving (inputs, target),
``loss(torch, output, target)`` and ``make_optimizer(torch, model)``. The networks that people know by name are those of
taeda-models.
"""
