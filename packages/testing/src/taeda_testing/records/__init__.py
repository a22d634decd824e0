"""Records by operator family; each module has a list ``RECORDS``."""
