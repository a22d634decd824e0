"""Counting floating-point operations of programs."""

from __future__ import annotations

import math

import pytest

import taeda
from taeda.utils import flop_counter
from taeda.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula


def counted(program):
    with FlopCounterMode(display=False) as counter:
        program()
    return counter


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda: taeda.ones(2, 3) @ taeda.ones(3, 4), 2 * 2 * 3 * 4),
        (lambda: taeda.ones(5, 2, 3) @ taeda.ones(5, 3, 4), 5 * 48),
        (lambda: taeda.ones(3) @ taeda.ones(3), 6),
        (lambda: taeda.ones(2, 3) @ taeda.ones(3), 12),
        (lambda: taeda.addmm(taeda.ones(4), taeda.ones(2, 3), taeda.ones(3, 4)), 48),
        (lambda: taeda.baddbmm(taeda.ones(5, 2, 4), taeda.ones(5, 2, 3), taeda.ones(5, 3, 4)), 240),
        (lambda: taeda.nn.functional.linear(taeda.ones(2, 7, 3), taeda.ones(4, 3)), 2 * 14 * 12),
        (
            lambda: taeda.nn.functional.conv2d(
                taeda.ones(2, 4, 9, 8), taeda.ones(6, 2, 3, 3), stride=2, padding=1, dilation=2, groups=2
            ),
            2 * (2 * 4 * 3) * (6 * 2 * 9),
        ),
        (lambda: taeda.nn.functional.conv1d(taeda.ones(1, 2, 8), taeda.ones(3, 2, 3)), 2 * 6 * 18),
        (lambda: taeda.ones(10) + taeda.ones(10), 0),
    ],
)
def test_operators(program, expected):
    assert counted(program).get_total_flops() == expected


def test_a_transposed_convolution_takes_a_window_for_each_number_of_its_argument():
    found = counted(
        lambda: taeda.nn.functional.conv_transpose2d(taeda.ones(1, 3, 4, 5), taeda.ones(3, 2, 3, 3))
    )
    assert found.get_total_flops() == 2 * 20 * 54


def test_attention():
    q, k, v = taeda.ones(2, 3, 5, 8), taeda.ones(2, 3, 7, 8), taeda.ones(2, 3, 7, 4)
    found = counted(lambda: taeda.nn.functional.scaled_dot_product_attention(q, k, v))
    assert found.get_total_flops() == 2 * 6 * 5 * 7 * (8 + 4)


def test_a_backward_takes_the_forward_for_each_gradient():
    model = taeda.nn.Sequential(taeda.nn.Linear(3, 4), taeda.nn.Linear(4, 2))
    x = taeda.ones(5, 3)
    forward = 2 * 5 * (12 + 8)
    assert counted(lambda: model(x)).get_total_flops() == forward
    # The first layer's input needs no gradient.
    assert counted(lambda: model(x).sum().backward()).get_total_flops() == 3 * forward - 2 * 5 * 12
    x = taeda.ones(1, 2, 6, 6, requires_grad=True)
    conv = taeda.nn.Conv2d(2, 4, 3)
    assert counted(lambda: conv(x).sum().backward()).get_total_flops() == 3 * 2 * 16 * 72


def test_counts_by_module_and_operator():
    model = taeda.nn.Sequential(taeda.nn.Linear(3, 4), taeda.nn.Sequential(taeda.nn.Linear(4, 2)))
    counter = counted(lambda: model(taeda.ones(5, 3)).sum().backward())
    counts = {name: sum(found.values()) for name, found in counter.get_flop_counts().items()}
    assert counts["Global"] == counts["Sequential"] == counter.get_total_flops()
    assert counts["Sequential.0"] == 2 * 120 and counts["Sequential.1"] == counts["Sequential.1.0"] == 3 * 80
    table = counter.get_table(depth=2)
    assert "Sequential.1 " in table and "Sequential.1.0" not in table and "100.00%" in table
    assert "Sequential.1.0" in counter.get_table(depth=3)
    # The module does everything, so that there is no row of everything; all numbers have the unit of the sum.
    assert table.splitlines()[:5] == [
        "Module          FLOP  % Total",
        "--------------  ----  -------",
        "Sequential       480  100.00%",
        " - aten.addmm    200   41.67%",
        " - aten.mm       280   58.33%",
    ]
    apart = counted(lambda: [model(taeda.ones(50, 3)), taeda.ones(9, 20) @ taeda.ones(20, 90)]).get_table()
    assert apart.splitlines()[2:6] == [
        "Global           34.400K  100.00%",
        " - aten.addmm     2.000K    5.81%",
        " - aten.mm       32.400K   94.19%",
        " Sequential       2.000K    5.81%",
    ]


def test_display(capsys):
    with FlopCounterMode(depth=1):
        taeda.ones(1000, 10) @ taeda.ones(10, 10)
    assert "200.000K" in capsys.readouterr().out
    with FlopCounterMode():
        pass
    assert "Global" in capsys.readouterr().out


def test_modules_need_not_be_named():
    with pytest.warns(UserWarning, match="'mods' is not needed"):
        FlopCounterMode(taeda.nn.Linear(2, 2), display=False)


def test_formulas_of_ones_own():
    def doubled(x, out_shape=None, **kwargs):
        return 2 * math.prod(x)

    def raw(x, *, out_val, **kwargs):
        return out_val.numel()

    raw._get_raw = True
    with FlopCounterMode(display=False, custom_mapping={"exp": doubled, taeda.ops.aten.log: raw}) as counter:
        taeda.ones(5).exp().log()
    assert counter.get_total_flops() == 15
    assert "aten::exp" not in flop_registry
    register_flop_formula("mypkg::thing")(doubled)
    try:
        with pytest.raises(ValueError, match="a formula already for mypkg::thing"):
            register_flop_formula(["mypkg::thing"])(doubled)
    finally:
        del flop_registry["mypkg::thing"]
    assert flop_counter.__all__


def test_a_module_that_raises_is_left():
    model = taeda.nn.Linear(2, 2)
    with FlopCounterMode(display=False) as counter, pytest.raises(RuntimeError):
        model(taeda.ones(1, 3))
    assert counter.get_total_flops() == 0
    assert counted(lambda: model(taeda.ones(1, 2))).get_flop_counts().keys() == {"Global", "Linear"}
