"""Settings of remote calls that nobody made."""

from datetime import timedelta

#: Seconds that a call may take.
DEFAULT_RPC_TIMEOUT_SEC: float = 60.0
DEFAULT_INIT_METHOD = "env://"
#: 0: as long as it takes.
DEFAULT_SHUTDOWN_TIMEOUT: float = 0
DEFAULT_NUM_WORKER_THREADS = 16
#: What stands for the timeout that was set for all calls.
UNSET_RPC_TIMEOUT: float = -1.0
DEFAULT_PROCESS_GROUP_TIMEOUT = timedelta(milliseconds=2**31 - 1)
