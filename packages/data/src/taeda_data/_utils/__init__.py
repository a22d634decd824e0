"""``utils.data._utils``: where programs import parts of the loader from although the place is private."""

import sys
from importlib.util import find_spec

from taeda_data._utils import collate, fetch, pin_memory, signal_handling, worker

#: Whether NumPy is there.
HAS_NUMPY = find_spec("numpy") is not None
#: Whether the system is Windows.
IS_WINDOWS = sys.platform == "win32"
#: Seconds between two looks at whether a worker still lives.
MP_STATUS_CHECK_INTERVAL = 5.0
#: Whether the interpreter is ending: loaders end their workers themselves.
python_exit_status = False

__all__ = [
    "HAS_NUMPY",
    "IS_WINDOWS",
    "MP_STATUS_CHECK_INTERVAL",
    "collate",
    "fetch",
    "pin_memory",
    "python_exit_status",
    "signal_handling",
    "worker",
]
