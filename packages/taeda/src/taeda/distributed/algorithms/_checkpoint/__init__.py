"""Modules whose results are computed again in the backward."""
