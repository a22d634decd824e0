"""Products of matrices that were scaled to fit into few bits, against products of what they stand for."""

import pytest

import taeda as t
import taeda.nn.functional as F

WHOLE, ROWS, BLOCKS = F.ScalingType.TensorWise, F.ScalingType.RowWise, F.ScalingType.BlockWise1x32


@pytest.fixture
def operands():
    t.manual_seed(0)
    return t.randn(4, 32).to(t.float8_e4m3fn), t.randn(16, 32).to(t.float8_e4m3fn).t()


@pytest.mark.parametrize(
    "kind, shapes", [(WHOLE, ((), ())), (WHOLE, ((1,), (1, 1))), (ROWS, ((4, 1), (1, 16)))]
)
def test_scales_of_all_and_of_rows(operands, kind, shapes):
    a, b = operands
    x, y = (t.rand(shape) + 0.5 for shape in shapes)
    exact = (a.double() * x.double()) @ (b.double() * y.double())
    found = F.scaled_mm(
        a, b, [x], [kind], y, kind, output_dtype=t.float32, swizzle_a=F.SwizzleType.NO_SWIZZLE
    )
    t.testing.assert_close(found, exact.float(), rtol=1e-5, atol=1e-5)
    assert F.scaled_mm(a, b, x, kind, y, kind).dtype is t.bfloat16
    assert F.scaled_mm(a, b, x, kind, y, kind, output_dtype=None).dtype is t.float8_e4m3fn
    biased = F.scaled_mm(a, b, x, kind, y, kind, bias=t.arange(16.0), output_dtype=t.float32)
    t.testing.assert_close(biased, found + t.arange(16.0))


def test_groups(operands):
    a, b = operands
    both = t.stack([b.float(), -b.float()]).to(t.float8_e4m3fn)
    x, y, ends = t.rand(4), t.rand(2, 16), t.tensor([1, 4])
    found = F.scaled_grouped_mm(a, both, x, ROWS, y, ROWS, offs=ends, output_dtype=t.float32)
    exact = (a.float() * x[:, None]) @ b.float()
    t.testing.assert_close(found, t.cat([exact[:1] * y[0], -exact[1:] * y[1]]))
    with pytest.raises(RuntimeError, match="'offs'"):
        F.scaled_grouped_mm(a, both, x, ROWS, y, ROWS)
    with pytest.raises(RuntimeError, match="one a group"):
        F.scaled_grouped_mm(a, both, x, ROWS, y, ROWS, offs=ends[:1])


def test_what_is_refused(operands):
    a, b = operands
    one, rows = t.tensor(1.0), t.ones(4, 1)
    with pytest.raises(ValueError, match=r"'scale_b' has shape .*expected shape \(1, 16\)"):
        F.scaled_mm(a, b, rows, ROWS, one, ROWS)
    with pytest.raises(ValueError, match=r"'scale_a' has shape .*expected one element"):
        F.scaled_mm(a, b, rows, WHOLE, one, WHOLE)
    with pytest.raises(ValueError, match=r"'scale_recipe_a' is .*BlockWise1x32"):
        F.scaled_mm(a, b, one, BLOCKS, one, WHOLE)
    with pytest.raises(ValueError, match="'scale_a' has 2 entries"):
        F.scaled_mm(a, b, [one, one], [BLOCKS, WHOLE], one, WHOLE)
    with pytest.raises(ValueError, match="'swizzle_b'"):
        F.scaled_mm(a, b, one, WHOLE, one, WHOLE, swizzle_b=F.SwizzleType.SWIZZLE_32_4_4)
    with pytest.raises(RuntimeError, match="matrices that fit each other"):
        F.scaled_mm(a, a, one, WHOLE, one, WHOLE)
