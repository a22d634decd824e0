"""The group of all processes of a job, for packages that do not import taeda.distributed.

`taeda.distributed.init_process_group` enters it. Its methods are those of `taeda.distributed.ProcessGroup`.
"""

from __future__ import annotations

from typing import Any

default: Any = None
