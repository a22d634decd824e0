"""The simulated accelerator beyond the first afternoon: attention, collectives, graphs, the current device."""

from __future__ import annotations


def test_attention_of_its_own_is_reached_by_nn_and_differentiates(sim):
    program = """
        import taeda
        from taeda.nn import functional as F

        class Count(taeda.library.Layer):
            calls = 0

            def __call__(self, op, args, kwargs):
                Count.calls += 1
                return op(*args, **kwargs)

        taeda.manual_seed(0)
        taeda.ones(1, device="sim")
        count = Count("count", operators=["sim::attention", "sim::attention_backward"])

        def compare(options, shapes=((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)), dtype=taeda.float32, mask=False):
            Count.calls = 0
            here = [taeda.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes]
            there = [x.detach().to("sim").requires_grad_() for x in here]
            if mask:
                options = {**options, "attn_mask": taeda.rand(shapes[0][-2], shapes[1][-2]) > 0.3}
            there_options = {k: v.to("sim") if k == "attn_mask" else v for k, v in options.items()}
            with count:
                found = F.scaled_dot_product_attention(*there, **there_options)
                expected = F.scaled_dot_product_attention(*here, **options)
                weights = taeda.rand(expected.shape, dtype=dtype)
                (found * weights.to("sim")).sum().backward()
                (expected * weights).sum().backward()
            close = [taeda.allclose(found.cpu(), expected, rtol=1e-4, atol=1e-5)]
            close += [taeda.allclose(a.grad.cpu(), b.grad, rtol=1e-4, atol=1e-5) for a, b in zip(there, here)]
            print(Count.calls, all(close))

        compare({})
        compare({"is_causal": True})
        compare({"is_causal": True, "scale": 0.3}, dtype=taeda.float64)
        compare({"is_causal": True}, ((1, 1, 9, 4), (1, 1, 5, 4), (1, 1, 5, 4)))
        # What it has no way for is computed by what the operator is made of.
        compare({}, mask=True)
        compare({}, ((5, 4), (7, 4), (7, 6)))
        with taeda.no_grad(), count:
            Count.calls = 0
            x = taeda.randn(1, 2, 3, 4).to("sim")
            F.scaled_dot_product_attention(x, x, x)
            F.scaled_dot_product_attention(x.half(), x.half(), x.half())
            print(Count.calls)
        print(taeda.library.op("scaled_dot_product_attention").kernels()["sim"])
    """
    assert sim.lines(program) == [*["2 True"] * 4, *["0 True"] * 2, "2", "taeda-backend-sim"]


def test_a_whole_recurrent_layer_of_a_strangers(sim):
    program = """
        import taeda

        calls = []
        lib = taeda.library.Library("stranger")

        @lib.kernel("lstm", "sim")
        def lstm(outputs, inputs):
            x, (h, c), params, has_biases, layers, dropout, train, bidirectional, batch_first = inputs
            if layers > 1 or bidirectional or batch_first or dropout:
                return NotImplemented
            calls.append(x.shape[0])
            w_ih, w_hh, *biases = params
            h, c, steps = h[0], c[0], []
            for step in x.unbind(0):
                z = step @ w_ih.T + h @ w_hh.T + sum(biases)
                i, f, g, o = z.chunk(4, 1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
                steps.append(h)
            return taeda.stack(steps), h.unsqueeze(0), c.unsqueeze(0)

        for options in ({}, {"num_layers": 2}, {"bidirectional": True}):
            net = taeda.nn.LSTM(3, 4, **options)
            x = taeda.randn(5, 2, 3)
            with taeda.no_grad():
                expected, (h, c) = net(x)
                found, (h2, c2) = net.to("sim")(x.to("sim"))
            print(taeda.allclose(found.cpu(), expected, atol=1e-5), taeda.allclose(c2.cpu(), c, atol=1e-5), calls)
        # While a gradient is recorded the layer is what it is made of.
        net = taeda.nn.LSTM(3, 4).to("sim")
        net(x.to("sim"))[0].sum().backward()
        print(calls, net.weight_hh_l0.grad.abs().sum().item() > 0)
    """
    assert sim.lines(program) == ["True True [5]", *["True True [5]"] * 2, "[5] True"]


def test_collectives_of_two_devices(sim):
    program = """
        import threading, taeda
        from taeda.backends import Group

        taeda.ones(1, device="sim")
        groups = [Group(f"sim:{r}", "all", r, 2) for r in range(2)]
        x = [taeda.tensor([1.0, 2.0, 3.0]).mul(10**r).to(f"sim:{r}") for r in range(2)]

        def both(call):
            works = [call(r) for r in range(2)]
            for work in works:
                work.wait()
            assert all(work.is_completed() for work in works)

        for reduction in ("sum", "product", "min", "max"):
            out = [t.clone() for t in x]
            both(lambda r: groups[r].all_reduce(out[r], reduction))
            print(reduction, [t.cpu().tolist() for t in out])
        print([t.cpu().tolist() for t in x], out[0]._version)
        gathered = [taeda.empty(2, 3, device=t.device) for t in x]
        both(lambda r: groups[r].all_gather(x[r], gathered[r]))
        print(gathered[0].cpu().tolist() == gathered[1].cpu().tolist() == [[1, 2, 3], [10, 20, 30]])
        parts = [taeda.empty(3, device=t.device, dtype=taeda.int32) for t in x]
        both(lambda r: groups[r].reduce_scatter(gathered[r].int(), parts[r]))
        print([t.cpu().tolist() for t in parts])
        both(lambda r: groups[r].broadcast(x[r], 1))
        print([t.cpu().tolist() for t in x])
        got = taeda.zeros(2, device="sim:1")
        works = [groups[1].recv(got, 0), groups[0].send(taeda.tensor([5.0, 6.0]).to("sim:0"), 1)]
        print(works[0].is_completed() in (False, True), [w.wait() for w in works], got.cpu().tolist())

        # Asynchronous: the first member's call returns while the other has not begun.
        out = [t.clone() for t in x]
        work = groups[0].all_reduce(out[0])
        print(work.is_completed())
        thread = threading.Thread(target=lambda: groups[1].all_reduce(out[1]).wait())
        thread.start()
        work.wait()
        thread.join()
        print(out[0].cpu().tolist())

        # Tensors of different sizes are an error of the work, and the streams go on.
        works = [groups[r].all_reduce(taeda.ones(2 + r, device=f"sim:{r}")) for r in range(2)]
        for work in works:
            try:
                work.wait()
            except RuntimeError as error:
                print("tensors of different sizes" in str(error))
        taeda.synchronize("sim:0")
        for wrong in (
            lambda: groups[0].all_reduce(x[1]),
            lambda: groups[0].all_reduce(x[0], "mean"),
            lambda: groups[0].all_gather(x[0], x[0]),
            lambda: groups[0].broadcast(x[0], 2),
            lambda: Group("sim:0", "all", 0, 2),
            lambda: Group("sim:0", "all", 5, 2),
        ):
            try:
                wrong()
            except ValueError as error:
                print(error)
        try:
            Group("cpu", "all", 0, 1)
        except NotImplementedError as error:
            print(error)
    """
    lines = sim.lines(program)
    assert lines[:5] == [
        "sum [[11.0, 22.0, 33.0], [11.0, 22.0, 33.0]]",
        "product [[10.0, 40.0, 90.0], [10.0, 40.0, 90.0]]",
        "min [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]",
        "max [[10.0, 20.0, 30.0], [10.0, 20.0, 30.0]]",
        "[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]] 1",
    ]
    assert lines[5:9] == [
        "True",
        "[[2, 4, 6], [20, 40, 60]]",
        "[[10.0, 20.0, 30.0], [10.0, 20.0, 30.0]]",
        "True [None, None] [5.0, 6.0]",
    ]
    assert lines[9:13] == ["False", "[20.0, 40.0, 60.0]", "True", "True"]
    assert "expected contiguous tensors of device 'sim:0'" in lines[13]
    assert "one of sum, product, min, max, found 'mean'" in lines[14]
    assert "expected 2 places in front" in lines[15] and "must be from 0 to 1, found 2" in lines[16]
    assert "the rank is taken" in lines[17] and "rank 5 of 2" in lines[18]
    assert lines[19:] == ["device 'cpu' has no collectives"]


def test_graphs_run_as_a_whole(sim):
    program = """
        import taeda
        from taeda.backends import compile_graph

        taeda.manual_seed(0)
        weight = taeda.randn(4, 3).to("sim")

        def net(x, bias):
            hidden = (x @ weight + bias).relu()
            return hidden.softmax(-1), hidden.sum(), taeda.nn.functional.gelu(hidden, approximate="tanh") * 2

        x, bias = taeda.randn(5, 4).to("sim"), taeda.randn(3).to("sim")
        fast = compile_graph(net, x, bias)
        print(repr(fast.reason))

        class Count(taeda.library.Layer):
            calls = 0

            def __call__(self, op, args, kwargs):
                Count.calls += 1
                return op(*args, **kwargs)

        for k in range(2):
            x = taeda.randn(5, 4).to("sim")
            found, expected = fast(x, bias), net(x, bias)
            print(all(taeda.equal(a.cpu(), b.cpu()) for a, b in zip(found, expected)))
        other = taeda.randn(2, 4).to("sim")  # another shape goes call by call
        print(tuple(fast(other, bias)[0].shape), tuple(compile_graph(lambda t: t * 2, x)(x).shape))
        x.requires_grad_()
        print(fast(x, bias)[0].requires_grad)
        print(compile_graph(lambda t: t.add_(1), x.detach()).reason)
        print(compile_graph(lambda t: taeda.cat([t, t]), x.detach()).reason)
        print(compile_graph(lambda t: t * 2, taeda.ones(3)).reason)
        try:
            compile_graph(net)
        except ValueError as error:
            print(error)
    """
    assert sim.lines(program) == [
        "''",
        "True",
        "True",
        "(2, 3) (5, 4)",
        "True",
        "add_ writes to its arguments",
        "device 'sim' takes no such graph",
        "device 'cpu' takes no such graph",
        "compile_graph: expected at least one example, all on one device",
    ]


def test_the_current_device_and_its_memory(sim):
    program = """
        import taeda
        sim = taeda.get_device_module("sim")
        sim.set_device(1)
        x = taeda.empty(1000, device="sim")
        print(x.device, sim.memory_allocated(0), sim.memory_allocated() == sim.memory_allocated(1) == 4000)
        print(sim.can_device_access_peer(0, 1), sim.can_device_access_peer(1, 1))
        with sim.device(0):
            print(taeda.ones(1, device="sim").device, sim.current_device())
        del x
        print(sim.memory_allocated(1), sim.max_memory_allocated(1), sim.memory_stats(1)["allocation.all.allocated"])
        with taeda.device("sim:0"):
            print(taeda.zeros(2).device)
        taeda.set_default_device("sim")
        print(taeda.zeros(2).device, taeda.nn.Linear(2, 2).weight.device)
        taeda.set_default_device(None)
    """
    assert sim.lines(program) == [
        "sim:1 0 True",
        "True False",
        "sim:0 0",
        "0 4000 1",
        "sim:0",
        "sim:1 sim:1",
    ]


def test_tensors_are_saved_and_loaded_on_their_device(sim):
    program = """
        import io, taeda
        state = {"a": taeda.tensor([1.0, 2.0]).to("sim:1"), "b": taeda.ones(1)}
        file = io.BytesIO()
        taeda.save(state, file, format="torch")
        for where in (None, "cpu", "sim:0", {"sim:1": "sim:0"}):
            file.seek(0)
            found = taeda.load(file, map_location=where)
            print(found["a"].device, found["b"].device, found["a"].cpu().tolist())
    """
    assert sim.lines(program) == [
        "sim:1 cpu [1.0, 2.0]",
        "cpu cpu [1.0, 2.0]",
        "sim:0 sim:0 [1.0, 2.0]",
        "sim:0 cpu [1.0, 2.0]",
    ]


def test_formats_of_others_lie_on_it(sim):
    program = """
        import taeda
        made = taeda.library.define_dtype("halves", [i / 2 for i in range(256)])
        x = taeda.tensor([0.5, 3.0], dtype=made.dtype)
        print(x.to("sim").dtype, x.to("sim").cpu().tolist(), x.to("sim")[1:].cpu().tolist())
    """
    assert sim.lines(program) == ["taeda.halves [0.5, 3.0] [3.0]"]


def test_kernels_read_and_write_float8(sim):
    program = """
        import taeda

        taeda.manual_seed(0)
        for dtype in (taeda.float8_e4m3fn, taeda.float8_e5m2):
            codes = taeda.arange(256).to(taeda.uint8).view(dtype)
            here, there = codes.to(taeda.float32), codes.to("sim").to(taeda.float32).cpu()
            print(here.nan_to_num(7e5, 1e6, -1e6).equal(there.nan_to_num(7e5, 1e6, -1e6)))
            known = here[here.isfinite()].sort()[0]
            between = (known[1:] + known[:-1]) / 2  # halves go to the even code
            odd = taeda.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 464.1, 61439.0, 61440.0])
            wide = taeda.randn(5000) * 10.0 ** taeda.randint(-6, 6, (5000,))
            x = taeda.cat([known, between, odd, wide])
            print(x.to(dtype).view(taeda.uint8).equal(x.to("sim").to(dtype).cpu().view(taeda.uint8)))
    """
    assert sim.lines(program) == ["True"] * 4


def test_products_with_weights_of_few_bits(sim):
    program = """
        import taeda
        from taeda.nn import functional as F

        taeda.manual_seed(0)
        x, scales = taeda.randn(2, 3, 5), taeda.rand(4)
        numbers = taeda.randint(-8, 8, (4, 5))
        packed = numbers.to(taeda.int4).to("sim").packed
        found = taeda.ops.sim.linear_int4(x.to("sim"), packed, scales.to("sim"))
        print(taeda.allclose(found.cpu(), F.linear(x, numbers * scales[:, None]), atol=1e-5))
        small = taeda.randn(4, 5).to(taeda.float8_e4m3fn)
        found = taeda.ops.sim.linear_float8(x.to("sim"), small.to("sim"), scales.to("sim"))
        print(taeda.allclose(found.cpu(), F.linear(x, small.float() * scales[:, None]), atol=1e-5))
        try:
            taeda.ops.sim.linear_int4(x.to("sim"), packed[:, :2], scales.to("sim"))
        except ValueError as complaint:
            print(complaint)
    """
    found = sim.lines(program)
    assert (
        found[:2] == ["True", "True"] and "expected float32 input, a weight of its last dimension" in found[2]
    )


def test_autocast_scaling_and_random_state_are_the_devices_own(sim):
    program = """
        import taeda

        x = taeda.randn(4, 4).to("sim")
        with taeda.autocast("sim", dtype=taeda.float16):
            print((x @ x).dtype, x.exp().dtype, taeda.nn.functional.linear(x, x).dtype, (x.cpu() @ x.cpu()).dtype)
        model = taeda.nn.Linear(4, 2).to("sim")
        optimizer = taeda.optim.SGD(model.parameters(), lr=0.5)
        scaler = taeda.amp.GradScaler("sim", init_scale=8.0)
        weight = model.weight.detach().cpu()
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        expected = weight - 0.5 * x.cpu().sum(0)
        print(taeda.allclose(model.weight.cpu(), expected.expand(2, 4), atol=1e-5), scaler.get_scale())
        optimizer.zero_grad()
        scaler.scale(model(x).sum() * float("inf")).backward()
        scaler.step(optimizer)  # skipped: a gradient is infinite
        scaler.update()
        print(taeda.allclose(model.weight.cpu(), expected, atol=1e-5), scaler.get_scale())
        state = taeda.sim.get_rng_state()
        first = taeda.rand(3, device="sim").cpu()
        taeda.sim.set_rng_state(state)
        print(taeda.rand(3, device="sim").cpu().equal(first))
    """
    types = "taeda.float16 taeda.float32 taeda.float16 taeda.float32"
    assert sim.lines(program) == [types, "True 8.0", "True 4.0", "True"]


def test_a_layout_of_its_own_goes_round_and_computes(sim):
    program = """
        import io
        import taeda
        from taeda import backends
        from taeda.nn import functional as F

        taeda.manual_seed(0)
        x, w, b = taeda.randn(2, 3, 4), taeda.randn(5, 4), taeda.randn(5)
        columns = backends.to_layout(w.to("sim"), "columns")
        print(columns.layout, columns.to_dense().cpu().equal(w), columns.cpu().equal(w))
        for bias in (None, b):
            there = None if bias is None else bias.to("sim")
            print(taeda.allclose(F.linear(x.to("sim"), columns, there).cpu(), F.linear(x, w, bias), atol=1e-6))
        try:
            columns.exp()
        except NotImplementedError as complaint:
            print(complaint)
        file = io.BytesIO()
        taeda.save(columns, file)
        file.seek(0)
        print(taeda.load(file).layout)
        file.seek(0)
        print(taeda.load(file, map_location="cpu").layout)
        whole = backends.to_layout(taeda.arange(6).reshape(2, 3).to("sim"), "columns")
        print(whole.tolist(), whole.dtype)
        try:
            backends.to_layout(taeda.ones(3).to("sim"), "columns")
        except ValueError as complaint:
            print(complaint)
    """
    lines = sim.lines(program)
    assert lines[:3] == ["columns True True", "True", "True"]
    assert lines[3] == "exp: not defined for layout 'columns' of device 'sim'; use to_dense() first"
    assert lines[4:7] == ["columns", "taeda.strided", "[[0, 1, 2], [3, 4, 5]] taeda.int64"]
    assert "the layout 'columns' is one of matrices" in lines[7]


def test_errors_of_queued_work_tell_operator_and_line(sim):
    program = """
        import taeda
        from taeda import nn

        x = taeda.ones(3).to("sim")
        wrong = taeda.tensor([9]).to("sim")
        embedding = nn.Embedding(3, 2).to("sim")

        def step():
            found = x.gather(0, wrong)
            return found + 1

        def through_a_module():
            return embedding(wrong).sum()

        for call in (step, through_a_module):
            result = call()
            try:
                result.cpu()
            except IndexError as complaint:
                print(f"{call.__code__.co_firstlineno + 1} {complaint}")
    """
    for line, name in zip(sim.lines(program), ("step", "through_a_module"), strict=True):
        number, _, text = line.partition(" ")
        assert "index 9 is out of range" in text
        assert text.endswith(f":{number}, in {name})") and "(queued by " in text
        assert name != "step" or "(queued by gather at <string>:" in text


def test_programs_name_it_as_their_own_backend(sim):
    program = """
        import taeda
        from taeda import nn
        from taeda.utils import generate_methods_for_privateuse1_backend, rename_privateuse1_backend

        for wrong in (generate_methods_for_privateuse1_backend, lambda: rename_privateuse1_backend("nobodys")):
            try:
                wrong()
            except RuntimeError as complaint:
                print(complaint)
        rename_privateuse1_backend("sim")
        generate_methods_for_privateuse1_backend()
        x = taeda.ones(2).sim()
        print(x.device, x.is_sim, x.cpu().is_sim, x.sim(1).device, taeda.ones(2).sim("sim:1").device)
        print(next(nn.Linear(2, 2).sim().parameters()).device, taeda.sim.device_count())
        try:
            rename_privateuse1_backend("other")
        except RuntimeError as complaint:
            print(complaint)
    """
    lines = sim.lines(program)
    assert "call rename_privateuse1_backend with the device's name first" in lines[0]
    assert "unknown device 'nobodys'" in lines[1]
    assert lines[2:] == [
        "sim:0 True False sim:1 sim:1",
        "sim:0 2",
        "rename_privateuse1_backend: the backend is 'sim' already",
    ]
