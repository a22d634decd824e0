"""Backward on asynchronous devices: on the streams of the forward calls, without waiting, on two devices at once."""

from __future__ import annotations

from textwrap import dedent

SETUP = """
    import taeda
    import taeda_backend_sim as device

    x = taeda.tensor([1.0, 2.0], device="sim", requires_grad=True)
    side = taeda.Stream("sim")
    main = taeda.current_stream("sim")
    taeda.synchronize("sim")
"""


def lines(sim, program: str) -> list[str]:
    return sim.lines(dedent(SETUP) + dedent(program))


def test_two_devices_work_at_the_same_time(sim):
    program = """
        other = taeda.ones(2, device="sim:1", requires_grad=True)
        losses = [(x * x).sum(), (other * 3).sum()]
        taeda.synchronize("sim"), taeda.synchronize("sim:1")
        with device.held(0), device.held(1):
            taeda.autograd.backward(losses)
            print(main.query(), taeda.current_stream("sim:1").query())
        print(x.grad.cpu().tolist(), other.grad.cpu().tolist())
    """
    assert lines(sim, program) == ["False False", "[2.0, 4.0] [3.0, 3.0]"]


def test_formulas_run_on_the_streams_of_their_forward_calls(sim):
    program = """
        seen = []
        side.wait_stream(main)
        with side:
            y = x * x
            y.register_hook(lambda g: seen.append(taeda.current_stream("sim") == side))
        main.wait_stream(side)
        z = y * 3
        z.register_hook(lambda g: seen.append(taeda.current_stream("sim") == main))
        x.register_hook(lambda g: seen.append(taeda.current_stream("sim") == side))
        z.sum().backward()
        print(seen, taeda.current_stream("sim") == main, x.grad.cpu().tolist())
    """
    assert lines(sim, program) == ["[True, True, True] True [6.0, 12.0]"]


def test_streams_wait_for_the_gradients_of_others(sim):
    """The root's gradient comes late, on the stream that is held; the other stream must not use it before."""
    program = """
        side.wait_stream(main)
        with side:
            y = x * x
        main.wait_stream(side)
        z = (y * 3).sum()
        taeda.synchronize("sim")
        with device.held():
            z.backward()
            print(main.query(), side.query())
        print(x.grad.cpu().tolist())
    """
    assert lines(sim, program) == ["False False", "[6.0, 12.0]"]


def test_the_caller_waits_for_the_streams_of_the_run(sim):
    program = """
        with side:
            side.wait_stream(main)
            loss = (x * x).sum()
            hold = device.held()
            hold.__enter__()
        (g,) = taeda.autograd.grad(loss, x, taeda.tensor(1.0, device="sim"), retain_graph=True)
        doubled = g * 2
        print(main.query(), side.query())
        hold.__exit__(None, None, None)
        print(g.cpu().tolist(), doubled.cpu().tolist())
        loss.backward(retain_graph=True)
        loss.backward()
        print((x.grad * 1).cpu().tolist())
    """
    assert lines(sim, program) == ["False False", "[2.0, 4.0] [4.0, 8.0]", "[4.0, 8.0]"]


def test_branches_on_two_streams_meet(sim):
    program = """
        side.wait_stream(main)
        with side:
            a = x * 2
        b = x * 5
        main.wait_stream(side)
        loss = (a * b).sum()
        taeda.synchronize("sim")
        with device.held():
            loss.backward()
        print(x.grad.cpu().tolist())
        with side:
            print(x.grad.cpu().tolist())
    """
    assert lines(sim, program) == ["[20.0, 40.0]", "[20.0, 40.0]"]


def test_callbacks_and_leaf_hooks_come_with_all_work_queued(sim):
    program = """
        from taeda_autograd import Variable

        seen = []
        x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.cpu().tolist()))
        y = x * 3
        y.register_hook(lambda g: Variable._execution_engine.queue_callback(lambda: seen.append("end")))
        y.sum().backward()
        print(seen)
    """
    assert lines(sim, program) == ["[[3.0, 3.0], 'end']"]
