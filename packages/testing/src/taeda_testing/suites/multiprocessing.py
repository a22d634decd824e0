"""Behaviour of a multiprocessing provider: memory shared between processes, errors of processes, names of Python's."""

from __future__ import annotations

from typing import Any

from taeda_registry.slots import tensor
from taeda_testing import processes
from taeda_testing.conformance.checks import Suite, equal, raises, true

suite = Suite("multiprocessing")
CHECKS = suite.checks
METHODS = ("fork", "spawn")
_WAIT = 300.0


def _run(context: Any, function: Any, *arguments: Any) -> Any:
    process = context.Process(target=function, args=arguments)
    process.start()
    return process


@suite.check("Process", "get_context", needs=["sharing"])
def shared_memory_is_written_by_others(part: Any) -> None:
    """What a process writes into a shared tensor that it got as an argument is seen by the one that made it."""
    for method in METHODS:
        x = tensor.zeros(3)
        equal("share_memory_() is the tensor", x.share_memory_() is x, True)
        equal("is_shared()", x.is_shared(), True)
        process = _run(part.get_context(method), processes.write, x, 1, 5.0)
        process.join(_WAIT)
        equal(f"exit status of a process ({method})", process.exitcode, 0)
        equal(f"a tensor that another process wrote to ({method})", x.tolist(), [0.0, 5.0, 0.0])


@suite.check("Queue", "SimpleQueue", needs=["sharing"])
def views_of_one_memory_arrive_as_such(part: Any) -> None:
    """A tensor and its view that are put into a queue arrive as two tensors over one memory, the sender's."""
    for method in METHODS:
        context = part.get_context(method)
        queue, done = context.Queue(), context.Queue()
        x = tensor.zeros(4, 3)
        queue.put((x, x[2]))
        process = _run(context, processes.fill_received, queue, done)
        equal(f"sum of what arrived, after its view was filled ({method})", done.get(timeout=_WAIT), 21.0)
        process.join(_WAIT)
        equal(f"the sender's tensor ({method})", x[2].tolist(), [7.0, 7.0, 7.0])


@suite.check("Pipe")
def tensors_arrive_as_they_were(part: Any) -> None:
    """A tensor that a process sends arrives with its dtype, shape and values."""
    for method in METHODS:
        context = part.get_context(method)
        here, there = context.Pipe()
        process = _run(context, processes.answer, there)
        true(f"something arrives ({method})", here.poll(_WAIT), "a tensor")
        found = here.recv()
        equal(f"dtype ({method})", found.dtype, tensor.int64)
        equal(f"values ({method})", found.tolist(), [[0, 3], [1, 4], [2, 5]])
        here.send(None)
        process.join(_WAIT)


@suite.check("start_processes", "ProcessRaisedException")
def errors_of_processes(part: Any) -> None:
    """An error in one of several processes is raised with its own text and the number of the process."""
    for method in METHODS:
        call = f"start_processes, process 1 raises ({method})"
        with raises(call, part.ProcessRaisedException, words=("ArithmeticError", "process 1 cannot count")):
            part.start_processes(processes.fail, args=(1,), nprocs=2, start_method=method)


@suite.check("start_processes", "ProcessExitedException", "ProcessContext")
def ends_of_processes(part: Any) -> None:
    """A process that ends with another status than 0 is told with that status; without any all is well."""
    with raises("start_processes, process 1 leaves", part.ProcessExitedException, words=("3",)):
        part.start_processes(processes.leave, args=(3,), nprocs=2, start_method="fork")
    context = part.start_processes(processes.leave, args=(0,), nprocs=2, join=False, start_method="fork")
    equal("number of processes", len(context.processes), 2)
    while not context.join(timeout=_WAIT):
        pass
    equal("exit states", [process.exitcode for process in context.processes], [0, 0])


@suite.check("get_sharing_strategy", "set_sharing_strategy", "get_all_sharing_strategies")
def strategies(part: Any) -> None:
    """The strategy in force is one of all; each can be chosen, nothing else."""
    known, before = part.get_all_sharing_strategies(), part.get_sharing_strategy()
    true("get_sharing_strategy()", before in known, f"one of {sorted(known)}")
    for name in known:
        part.set_sharing_strategy(name)
        equal("get_sharing_strategy()", part.get_sharing_strategy(), name)
    part.set_sharing_strategy(before)
    with raises("set_sharing_strategy('nonsense')", Exception):
        part.set_sharing_strategy("nonsense")
