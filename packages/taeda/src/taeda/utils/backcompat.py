"""Warnings of the year 2017, which programs of that time switch on: nothing gives them any more."""

from __future__ import annotations


class Warning:
    """Whether one is asked for; off at first."""

    enabled = False


broadcast_warning = Warning()
keepdim_warning = Warning()
