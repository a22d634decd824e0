"""Sparsifiers, which decide what of a tensor is masked."""
