"""Settings of the tracer."""

from __future__ import annotations

#: Whether shape propagation leaves out where a value came from; nothing reads it.
disable_progress = True
verbose_progress = False
