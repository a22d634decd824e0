"""SciPy, scikit-learn and einops compute with taeda's tensors and arrays through the array API standard."""

import os
import subprocess
import sys
import textwrap

import pytest

SCIPY = {
    "zscore": "scipy.stats.zscore(a)",
    "skew": "scipy.stats.skew(a)",
    "moment": "scipy.stats.moment(a, 3)",
    "ttest_ind": "scipy.stats.ttest_ind(a, b).statistic",
    "pearsonr": "scipy.stats.pearsonr(a, b).pvalue",
    "gmean": "scipy.stats.gmean(abs(a))",
    "entropy": "scipy.stats.entropy(abs(a))",
    "false_discovery_control": "scipy.stats.false_discovery_control(abs(a) / 10)",  # asks for put_along_axis
    "logsumexp": "scipy.special.logsumexp(a)",
    "erf": "scipy.special.erf(a)",
    "convolve": "scipy.signal.convolve(a, b)",
    "detrend": "scipy.signal.detrend(a)",
    "gaussian_filter": "scipy.ndimage.gaussian_filter(a, 1.0)",
    "dct": "scipy.fft.dct(a)",
}
LEARN = {
    "StandardScaler": "sklearn.preprocessing.StandardScaler().fit(x).transform(x)",
    "MinMaxScaler": "sklearn.preprocessing.MinMaxScaler().fit_transform(x)",
    "Normalizer": "sklearn.preprocessing.Normalizer().fit_transform(x)",
    "PolynomialFeatures": "sklearn.preprocessing.PolynomialFeatures(2).fit_transform(x)",
    "accuracy_score": "sklearn.metrics.accuracy_score(y, y)",
    "r2_score": "sklearn.metrics.r2_score(x[:, 0], x[:, 1])",
}
PROGRAM = """
import contextlib, warnings
import numpy as np
import scipy.fft, scipy.ndimage, scipy.signal, scipy.special, scipy.stats
import sklearn.metrics, sklearn.preprocessing
import taeda as t
import taeda.array_api as xp

random = np.random.default_rng(11)
a, b = random.normal(size=(2, 40))
x = random.normal(size=(60, 4)).astype(np.float32)
y = (x[:, 0] > 0).astype(np.int64)
warnings.simplefilter("ignore")

def compute(expression, convert, within):
    with within:
        return eval(expression, globals() | {{n: convert(globals()[n]) for n in "abxy"}})

for name, expression in {calls!r}.items():
    expected = compute(expression, np.asarray, contextlib.nullcontext())
    for kind, convert in (("tensor", t.from_numpy), ("array", xp.asarray)):
        learns = "sklearn" in expression
        within = sklearn.config_context(array_api_dispatch=True) if learns else contextlib.nullcontext()
        found = compute(expression, convert, within)
        assert isinstance(found, (t.Tensor, float)), (name, kind, type(found))
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-5, err_msg=f"{{name}} of a {{kind}}")
print("fine")
"""


def test_gradients_flow_through_arrays():
    import taeda
    import taeda.array_api as xp

    tensor = taeda.tensor([1.0, 2.0, 3.0], requires_grad=True)
    array = xp.asarray(tensor)
    xp.sum(xp.exp(array) * array).backward()
    exact = (1 + tensor.detach()) * tensor.detach().exp()
    apart = (tensor.grad - exact).abs().max().item()
    assert apart < 1e-5 and array.requires_grad


@pytest.mark.parametrize("calls", [SCIPY, LEARN], ids=["scipy", "scikit-learn"])
def test_libraries_compute_with_tensors_and_arrays(calls):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM).format(calls=calls)],
        capture_output=True,
        text=True,
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
    )
    assert done.stdout.endswith("fine\n"), done.stderr
