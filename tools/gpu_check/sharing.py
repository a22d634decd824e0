"""Two processes share tensors of a GPU: each sees what the other writes, and memory ends with its last holder.

python tools/gpu_check/sharing.py
"""

from __future__ import annotations

from typing import Any

import taeda as torch
import taeda.multiprocessing as mp


def other(arrives: Any, returns: Any) -> None:
    """Adds one to what arrives, and sends a tensor of its own."""
    x, view = arrives.get()
    x.add_(1)
    mine = torch.arange(6.0, device="cuda")
    torch.cuda.synchronize()
    returns.put((float(view.sum()), mine))
    arrives.get()  # until told to end


def main() -> None:
    """Both ways, and what is left afterwards."""
    context = mp.get_context("spawn")
    arrives, returns = context.Queue(), context.Queue()
    process = context.Process(target=other, args=(arrives, returns))
    process.start()
    x = torch.ones(1 << 20, device="cuda")
    arrives.put((x, x[::2]))
    seen, theirs = returns.get(timeout=120)
    assert seen == 1 << 20, seen
    assert float(x.sum()) == 2 << 20
    assert theirs.tolist() == [0, 1, 2, 3, 4, 5]
    del theirs
    arrives.put("end")
    process.join(60)
    assert process.exitcode == 0, process.exitcode
    del x
    torch.cuda.ipc_collect()
    assert torch.cuda.memory_allocated() == 0, torch.cuda.memory_allocated()
    print("two processes share tensors of the device")


if __name__ == "__main__":
    main()
