"""Every kind of operator on tiny, 1 MB and 64 MB inputs, forward and backward, beside PyTorch in one run."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path

from _measure import failure, load, parser, ratio, statements_in_turn, table
from _reasons import write

from taeda_testing import all_records

# Sides of square matrices, and what else has as many elements: images, volumes, sequences.
SIZES = {
    "tiny": {
        "n": 2,
        "sides": "2, 2",
        "image": "1, 1, 2, 2",
        "volume": "1, 1, 2, 2, 2",
        "sequence": "1, 1, 4",
    },
    "1 MB": {
        "n": 512,
        "sides": "512, 512",
        "image": "4, 16, 64, 64",
        "volume": "1, 8, 32, 32, 32",
        "sequence": "8, 64, 512",
    },
    "64 MB": {
        "n": 4096,
        "sides": "64, 512, 512",
        "image": "16, 64, 128, 128",
        "volume": "4, 16, 64, 64, 64",
        "sequence": "64, 256, 1024",
    },
}
# The time of PyTorch that taeda's is to stay under, in the geometric mean.
AIMS = {"tiny": 0.5, "1 MB": 0.6, "64 MB": 0.9}

OPERANDS = """
torch.manual_seed(3)
def made(*sizes):
    return (torch.rand(*sizes) * 0.9 + 0.05).requires_grad_({grad})
"""
FUNCTIONS = """
import numpy
rng = numpy.random.default_rng(3)
operands = [torch.from_numpy(rng.uniform(low, high, ({n}, {n})).astype("float32")) for low, high, _ in {domains}]
operands = [operand.requires_grad_({grad}) for operand in operands]
name = "{name}".removeprefix("special_")
function = next(getattr(place, name) for place in (torch, F, torch.special) if hasattr(place, name))
"""
MATRICES = """
a, b, c = made({n}, {n}), torch.rand({n}, {n}) * 0.9 + 0.05, torch.rand({n}, {n})
v, k = torch.rand({n}), b > 0.5
i, r = torch.randint({n}, ({n}, {n})), torch.randint({n}, ({n},))
"""
ON_MATRICES = """
a + b; a - b; a * b; a / b; a + v; a * 2.0; a ** 2; a ** b; torch.fmod(a, b); torch.remainder(a, b);
torch.maximum(a, b); torch.hypot(a, b); torch.lerp(a, b, 0.3); torch.addcmul(a, b, c);
torch.addcdiv(a, b, c); torch.where(k, a, b); a.clamp(0.2, 0.8); a.masked_fill(k, 0.0);
torch.cdist(a[:64], b[:64]); torch.outer(v, v) * a; torch.logaddexp(a, b); torch.xlogy(a, b); a.sum();
a.sum(1); a.sum(0); a.mean(0); a.var(1); a.std(0); a.prod(1); a.max(); a.max(1)[0]; a.max(0)[0];
a.amax(1); a.amin(0); a.norm(); a.norm(dim=1); a.logsumexp(1); a.logsumexp(0); a.median(1)[0];
a.quantile(0.3, dim=1); a.nansum(1); torch.linalg.vector_norm(a, 3, dim=0); a.kthvalue(1, 1)[0];
a.mode(1)[0]; torch.aminmax(a, dim=1)[0]; a.trace(); a.diagonal().sum(); a.cumsum(1); a.cumsum(0);
a.cumprod(1); a.cummax(1)[0]; a.logcumsumexp(1); a.softmax(1); a.softmax(0); a.log_softmax(1);
a.log_softmax(0); a.sort(1)[0]; a.sort(0)[0]; a.topk(1, 1)[0]; a.diff(dim=1); F.normalize(a);
F.softmin(a, 1); F.glu(a); F.layer_norm(a, ({n},)); F.rms_norm(a, ({n},)); a.t().contiguous(); a.flip(0);
a.flip(1); a.roll(1, 1); a.rot90(); torch.cat([a, b]); torch.cat([a, b], 1); torch.stack([a, b]);
a.repeat(2, 1); a.tile(1, 2); a.repeat_interleave(2, 0); a.tril(); a.triu(); a.index_select(0, r);
a.index_select(1, r); a[r]; a[:, r]; a[k]; a.gather(1, i); a.gather(0, i); a.take(i);
a.take_along_dim(i, 1); torch.zeros_like(b).scatter_add(1, i, a); a.scatter(1, i, 0.5);
a.scatter_reduce(1, i, b, 'amax'); a.index_add(0, r, b); a.index_copy(0, torch.arange({n}), b);
a.index_fill(0, r, 1.0); a.masked_select(k); a.masked_scatter(k, b); a.expand(2, {n}, {n}).contiguous();
a.unfold(1, 2, 1).contiguous(); a.clone(); a.double(); a.bfloat16(); torch.diag_embed(a[:8]);
F.pad(a, (1, 1, 1, 1)); F.embedding(i[0], a); torch.kron(a[:2], b[:2, :2]);
torch.block_diag(a, b[:2, :2]); a @ b; torch.mv(a, v); torch.addmm(c, a, b); a.t() @ b;
torch.einsum('ij,ij->i', a, b); torch.tensordot(a, v, 1); F.linear(a, b, v);
torch.linalg.multi_dot([a, b]); (a * b).sum(1); F.cosine_similarity(a, b); F.pairwise_distance(a, b);
F.mse_loss(a, b); F.l1_loss(a, b); F.smooth_l1_loss(a, b); F.huber_loss(a, b);
F.binary_cross_entropy(a, b); F.binary_cross_entropy_with_logits(a, b);
F.kl_div(a, b, reduction='batchmean'); F.poisson_nll_loss(a, b); F.gaussian_nll_loss(a, b, c);
F.cross_entropy(a, r); F.nll_loss(a, r); F.hinge_embedding_loss(a, b); F.soft_margin_loss(a, b);
F.cosine_embedding_loss(a, b, v); F.margin_ranking_loss(a, b, c); F.triplet_margin_loss(a, b, c);
F.multi_margin_loss(a, r); F.multilabel_soft_margin_loss(a, b); torch.fft.rfft(a).abs();
torch.fft.fft2(a).abs(); torch.fft.irfft(torch.complex(a, b)); a.H; a.T; a.mT; a.mH; a[1:];
a.__radd__(2.0); a.__rdiv__(2.0); a.__rmod__(2.0); a.__rmul__(2.0); a.__rpow__(2.0); a.__rsub__(2.0);
a.__rmatmul__(b); torch.addbmm(c, a[None], b[None]); torch.addmv(v, a, v); torch.addr(a, v, v);
torch.alias_copy(a); a.as_strided(({n}, {n}), ({n}, 1)); torch.as_strided_copy(a, ({n},), (1,));
torch.as_strided_scatter(a, v, ({n},), (1,)); torch.atleast_1d(a); torch.atleast_2d(a);
torch.atleast_3d(a); torch.broadcast_tensors(a, v)[0]; a[0].broadcast_to({n}, {n}); a.chunk(2)[0];
a.clamp_max(0.5); a.clamp_min(0.5); torch.column_stack([a, b]); torch.combinations(a[0, :64]);
torch.cartesian_prod(a[0, :512], v[:512]);
torch.linalg.cross(a[:, :2].repeat(1, 2)[:, :3], b[:, :2].repeat(1, 2)[:, :3]);
torch.cross(a[:, :2].repeat(1, 2)[:, :3], b[:, :2].repeat(1, 2)[:, :3], dim=1); a.cummin(1)[0];
torch.cumulative_trapezoid(a); torch.trapezoid(a); torch.trapz(a); a.diag(); torch.diagflat(a[0]);
torch.diagonal_copy(a); a.diagonal_scatter(v); torch.dist(a, b); torch.dot(a.flatten(), b.flatten());
torch.vdot(a.flatten(), b.flatten()); torch.inner(a, b[:4]); a.mm(b); a.matmul(b);
torch.linalg.vecdot(a, b); torch.dstack([a, b]); torch.hstack([a, b]); torch.vstack([a, b]);
a[:, :, None].dsplit(1)[0]; a.hsplit(2)[0]; a.vsplit(2)[0]; a[0].expand_as(b);
torch.expand_copy(a, (2, {n}, {n})); a.float(); a.half(); a.cfloat().real; a.cdouble().real;
torch.fft.fft(a).abs(); torch.fft.ifft(a).abs(); torch.fft.ifft2(a).abs(); torch.fft.fftn(a).abs();
torch.fft.ifftn(a).abs(); torch.fft.rfft2(a).abs(); torch.fft.rfftn(a).abs(); torch.fft.hfft(a);
torch.fft.hfft2(a); torch.fft.hfftn(a); torch.fft.ihfft(a).abs(); torch.fft.ihfft2(a).abs();
torch.fft.ihfftn(a).abs(); torch.fft.irfft2(torch.complex(a, b)); torch.fft.irfftn(torch.complex(a, b));
torch.fft.fftshift(a); torch.fft.ifftshift(a); torch.fill(a, 2.0); a.fliplr(); a.flipud();
torch.gradient(a)[0]; torch.complex(a, b).imag; a.index_put((r,), b); a.index_reduce(0, r, b, 'amax');
a.put(i, b); a.mvlgamma(1); torch.polygamma(1, a); torch.special.polygamma(1, a); a.movedim(0, 1);
a.msort(); a.nanmean(1); a.nanmedian(1)[0]; a.nanquantile(0.3, dim=1); a.narrow(0, 0, 1);
torch.narrow_copy(a, 0, 0, 1); a.reshape(-1); a.reshape_as(b.t()); a.ravel(); a.renorm(2, 0, 1.0);
a.resolve_conj(); a.resolve_neg(); a.select(0, 1); a.select_scatter(v, 0, 1);
a.slice_scatter(b[:1], 0, 0, 1); a.split(1)[0]; a.split_with_sizes([1, {n} - 1])[0];
torch.split_with_sizes_copy(a, [1, {n} - 1])[0]; a[None].squeeze(0); torch.squeeze_copy(a[None], 0);
torch.std_mean(a, 1)[0]; torch.var_mean(a, 1)[0]; a.sum_to_size(1, {n}); torch.t_copy(a);
a.tensor_split(2)[0]; torch.transpose_copy(a, 0, 1); torch.permute_copy(a, (1, 0));
torch.true_divide(a, b); a.unbind(0)[0]; torch.unbind_copy(a[:8])[0]; a.unflatten(0, (1, {n}));
torch.unfold_copy(a, 1, 2, 1); a.unsafe_chunk(2)[0]; a.unsafe_split(1)[0]; a.unsqueeze(0);
torch.unsqueeze_copy(a, 0); a.view(-1); a.view_as(b); torch.view_copy(a, (-1,));
torch.view_as_real(torch.complex(a, b)); torch.view_as_complex(a.reshape(-1, 2)).real; F.alpha_dropout(a);
F.feature_alpha_dropout(a[None]); F.celu(a); F.elu(a); F.hardshrink(a); F.hardtanh(a); F.leaky_relu(a);
F.prelu(a, b[0, :1]); F.rrelu(a, training=True); F.softplus(a); F.softshrink(a); F.threshold(a, 0.3, 0.1);
F.embedding_bag(i[:, :2], a); F.multilabel_margin_loss(a, i); F.pdist(a[:64]);
F.triplet_margin_with_distance_loss(a, b, c); torch.native_layer_norm(a, ({n},), None, None, 1e-5)[0];
torch.linalg.matrix_norm(a); torch.linalg.vander(a[0, :64]); torch.softmax(a, 1, dtype=torch.float64);
torch.constant_pad_nd(a, (1, 1)); torch.frexp(a)[0]; a.to_sparse().to_dense();
torch.sparse.mm(b.to_sparse(), a[:, :4]); F.linear_cross_entropy(a, b, r);
F.ctc_loss(a[:, None, :].log_softmax(-1), torch.ones(1, 1, dtype=torch.int64), torch.tensor([{n}]), torch.tensor([1]))
"""
ON_MATRICES_WITHOUT_GRADIENT = """
a > b; a == b; torch.isnan(a); a.argmax(); a.argmax(1); a.argmin(0); k.any(); k.all(1); k.sum(1);
a.count_nonzero(); k.nonzero(); a.unique(); a.argsort(1); torch.searchsorted(v.sort()[0], b);
torch.bucketize(b, v.sort()[0]); torch.histc(b); torch.bincount(i.flatten()); torch.zeros({n}, {n});
torch.full(({n}, {n}), 2.0); torch.arange({n} * {n}); torch.eye({n}); torch.rand({n}, {n});
torch.randn({n}, {n}); torch.randint(9, ({n}, {n})); torch.randperm({n}); torch.bernoulli(b);
torch.multinomial(b, 1); torch.tril_indices({n}, {n}); i + i; i // 3; i << 2; i & i; ~k; k & k; k ^ k;
a.to(torch.int64); torch.allclose(b, c); torch.equal(b, c); F.one_hot(r % 2); torch.isin(r, r[:2]);
b.clone().add_(c); b.clone().mul_(2.0); torch.meshgrid(v, v, indexing='ij')[0].contiguous();
torch.cov(b[:64]); torch.corrcoef(b[:64]); a.argwhere(); i.bitwise_and(i); i.bitwise_or(i);
i.bitwise_xor(i); i.bitwise_not(); i.bitwise_left_shift(2); i.bitwise_right_shift(2); i.__rand__(3);
i.__ror__(3); i.__rxor__(3); a.bool(); a.byte(); a.char(); a.int(); a.long(); a.short();
torch.broadcast_shapes(({n}, 1), ({n},)); b.clone().cauchy_(); b.clone().exponential_();
b.clone().geometric_(0.5); b.clone().log_normal_(); b.clone().normal_(); b.clone().uniform_();
torch.normal(b, c); torch.empty({n}, {n}); torch.empty_like(b); torch.empty_permuted(({n}, {n}), (1, 0));
torch.empty_strided(({n}, {n}), ({n}, 1)); torch.full_like(b, 2.0); torch.ones({n}, {n});
torch.ones_like(b); torch.zeros_like(b); torch.rand_like(b); torch.randn_like(b);
torch.randint_like(b, 9); b.new_empty({n}, {n}); b.new_empty_strided(({n}, {n}), ({n}, 1));
b.new_full(({n}, {n}), 2.0); b.new_ones({n}, {n}); b.new_zeros({n}, {n}); torch.gcd(i, i + 1);
torch.lcm(i, i + 1); torch.histogram(b, 10)[0]; torch.histogramdd(b[:, :2], 4)[0]; torch.isclose(b, c);
b[0, 0].item(); torch.linspace(0, 1, {n} * {n}); torch.logspace(0, 1, {n} * {n});
torch.nonzero_static(k, size={n}); b.clone().resize_({n}); b.clone().resize_as_(c);
torch.scalar_tensor(2.0); torch.triu_indices({n}, {n}); torch.unique_consecutive(b);
torch.unravel_index(i, ({n}, {n}))[0]; torch.hann_window({n} * {n});
torch.signal.windows.bartlett({n} * {n}); torch.signal.windows.blackman({n} * {n});
torch.signal.windows.cosine({n} * {n}); torch.signal.windows.exponential({n} * {n});
torch.signal.windows.gaussian({n} * {n}); torch.signal.windows.general_cosine({n} * {n}, a=[0.5, 0.5]);
torch.signal.windows.general_hamming({n} * {n}); torch.signal.windows.hamming({n} * {n});
torch.signal.windows.hann({n} * {n}); torch.signal.windows.kaiser({n} * {n});
torch.signal.windows.nuttall({n} * {n}); torch.special.chebyshev_polynomial_t(b, 5);
torch.special.chebyshev_polynomial_u(b, 5); torch.special.chebyshev_polynomial_v(b, 5);
torch.special.chebyshev_polynomial_w(b, 5); torch.special.hermite_polynomial_h(b, 5);
torch.special.hermite_polynomial_he(b, 5); torch.special.laguerre_polynomial_l(b, 5);
torch.special.legendre_polynomial_p(b, 5); torch.special.shifted_chebyshev_polynomial_t(b, 5);
torch.special.shifted_chebyshev_polynomial_u(b, 5); torch.special.shifted_chebyshev_polynomial_v(b, 5);
torch.special.shifted_chebyshev_polynomial_w(b, 5); torch.special.modified_bessel_i0(b);
torch.special.modified_bessel_i1(b); torch.linalg.matrix_rank(b[:64, :64])
"""
IMAGES = """
x = made({image})
w = torch.rand(x.shape[1], x.shape[1], 3, 3)
t = torch.randint(x.shape[1], (x.shape[0], *x.shape[2:]))
g = torch.rand(x.shape[0], 4, 4, 2) * 2 - 1
"""
ON_IMAGES = """
F.conv2d(x, w, padding=1); F.conv_transpose2d(x, w, padding=1); F.max_pool2d(x, 2); F.avg_pool2d(x, 2);
F.adaptive_avg_pool2d(x, 1); F.adaptive_max_pool2d(x, 2); F.lp_pool2d(x, 2, 2);
F.batch_norm(x, None, None, training=True); F.group_norm(x, 1); F.local_response_norm(x, 2);
F.interpolate(x, scale_factor=2); F.interpolate(x, scale_factor=2, mode='bilinear');
F.interpolate(x, scale_factor=2, mode='bicubic'); F.grid_sample(x, g, align_corners=False);
F.pad(x, (1, 1, 1, 1), mode='replicate'); F.pad(x, (1, 1, 1, 1), mode='reflect');
F.pad(x, (1, 1, 1, 1), mode='circular'); F.unfold(x, 2); F.pixel_unshuffle(x, 2); F.channel_shuffle(x, 1);
F.cross_entropy(x, t); F.nll_loss(x, t); x.permute(0, 2, 3, 1).contiguous(); x.mean((2, 3)); x.softmax(1);
x.flip(3); x.roll((1, 1), (2, 3)); F.dropout(x); F.dropout2d(x); x.to(memory_format=torch.channels_last);
torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[0]; F.adaptive_max_pool2d(x, 1);
torch.native_group_norm(x, None, None, x.shape[0], x.shape[1], x.shape[2] * x.shape[3], 1, 1e-5)[0];
torch.grid_sampler_2d(x, g, 0, 0, False); F.fractional_max_pool2d(x, 1, output_size=2);
F.upsample_bilinear(x, scale_factor=2); F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2);
F.upsample_nearest(x, scale_factor=2);
F.pixel_shuffle(x.reshape(x.shape[0], x.shape[1] * 4, x.shape[2] // 2, -1), 2)
"""
VOLUMES = """
x = made({volume})
w = torch.rand(x.shape[1], x.shape[1], 3, 3, 3)
"""
ON_VOLUMES = """
F.conv3d(x, w, padding=1); F.max_pool3d(x, 2); F.avg_pool3d(x, 2); F.adaptive_avg_pool3d(x, 1);
F.interpolate(x, scale_factor=2, mode='trilinear'); F.pad(x, (1, 1, 1, 1, 1, 1), mode='replicate');
F.pad(x, (1, 1, 1, 1, 1, 1), mode='reflect'); F.pad(x, (1, 1, 1, 1, 1, 1)); F.adaptive_max_pool3d(x, 1);
F.conv_transpose3d(x, w, padding=1); F.dropout3d(x); F.fractional_max_pool3d(x, 1, output_size=2);
F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2);
torch.grid_sampler_3d(x, torch.zeros(x.shape[0], 4, 4, 4, 3), 0, 0, False)
"""
SEQUENCES = """
x = made({sequence})
w = torch.rand(x.shape[1], x.shape[1], 3)
s = x.shape[-1]
"""
ON_SEQUENCES = """
F.conv1d(x, w, padding=1); F.max_pool1d(x, 2); F.avg_pool1d(x, 2);
F.interpolate(x, scale_factor=2, mode='linear'); F.instance_norm(x); torch.bmm(x, x.transpose(1, 2));
torch.baddbmm(x[:, :, :1], x, x.transpose(1, 2)); x @ x.transpose(1, 2);
F.scaled_dot_product_attention(x, x, x); torch.stft(x[0], min(s, 64), return_complex=True).abs();
F.adaptive_avg_pool1d(x, 1); F.adaptive_max_pool1d(x, 1); F.conv_transpose1d(x, w, padding=1);
F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2);
torch.istft(torch.stft(x[0], min(s, 64), return_complex=True, window=torch.ones(min(s, 64))), min(s, 64),
window=torch.ones(min(s, 64)))
"""
# Of cubic cost: matrices of at most 512 rows, in batches.
LINALG = """
q = torch.rand({sides})
p = (q @ q.mT + q.shape[-1] * torch.eye(q.shape[-1])).requires_grad_({grad})
"""
ON_LINALG = """
torch.linalg.inv(p); torch.linalg.det(p); torch.linalg.solve(p, q); torch.linalg.cholesky(p);
torch.linalg.qr(p)[0]; torch.linalg.eigvalsh(p); torch.linalg.eigh(p)[0]; torch.linalg.svdvals(p);
torch.linalg.slogdet(p)[1]; torch.linalg.lu_factor(p)[0]; torch.linalg.solve_triangular(p, q, upper=True);
torch.linalg.matrix_exp(p); torch.linalg.matrix_power(p, 3); torch.linalg.pinv(p);
torch.linalg.cholesky_ex(p)[0]; torch.cholesky_inverse(p); torch.cholesky_solve(q, p);
torch.linalg.cond(p); torch.linalg.eig(p)[0].abs(); torch.linalg.eigvals(p).abs();
torch.linalg.householder_product(p, q[..., 0]); torch.linalg.inv_ex(p)[0]; torch.linalg.ldl_factor(p)[0];
torch.linalg.ldl_factor_ex(p)[0]; torch.linalg.lstsq(p, q)[0]; torch.linalg.lu(p)[1];
torch.linalg.lu_factor_ex(p)[0]; torch.linalg.solve_ex(p, q)[0]; torch.linalg.svd(p)[1]; torch.svd(p)[1];
torch.logdet(p); torch.pinverse(p); torch.geqrf(p)[0]; torch.triangular_solve(q, p)[0]; torch.lu(p)[0];
torch.linalg.lu_solve(*torch.linalg.lu_factor(p), q); torch.lu_solve(q, *torch.linalg.lu_factor(p));
torch.lu_unpack(*torch.linalg.lu_factor(p))[1]; torch.ormqr(p, q[..., 0], q); torch.pca_lowrank(p, 1)[1];
torch.svd_lowrank(p, 1)[1];
torch.linalg.tensorsolve(p.reshape(-1, *p.shape[-2:])[0], q.reshape(-1)[: q.shape[-1]]);
torch.linalg.tensorinv(p.reshape(-1, *p.shape[-2:])[0], 1)
"""
# set-up, calls, whether they have gradients
FAMILIES = [
    (MATRICES, ON_MATRICES, True),
    (MATRICES, ON_MATRICES_WITHOUT_GRADIENT, False),
    (IMAGES, ON_IMAGES, True),
    (VOLUMES, ON_VOLUMES, True),
    (SEQUENCES, ON_SEQUENCES, True),
    (LINALG, ON_LINALG, True),
]


def functions() -> Iterator[tuple[str, str, str, bool]]:
    """Functions of each element, with operands in the domains of their records."""
    records = {
        record.name: record for record in all_records() if record.domains and "float32" in record.dtypes
    }
    for record in records.values():
        if record.name in ("to_device", "trunc_divide"):  # no functions of PyTorch
            continue
        yield (
            record.name,
            FUNCTIONS.replace("{name}", record.name).replace("{domains}", repr(record.domains)),
            "function(*operands)",
            record.differentiable,
        )


def cases(size: str) -> Iterator[tuple[str, str, str]]:
    """All measurements at one size as (label, set-up, statement)."""
    numbers = SIZES[size]
    rows = list(functions())
    for setup, calls, smooth in FAMILIES:
        rows += [
            (call, OPERANDS + setup, call, smooth)
            for call in (" ".join(words.split()) for words in calls.split(";"))
        ]
    for label, setup, call, smooth in rows:
        for training in (False, True) if smooth else (False,):
            made, called = setup.replace("{grad}", str(training)), call
            for key, value in numbers.items():
                made, called = (
                    made.replace(f"{{{key}}}", str(value)),
                    called.replace(f"{{{key}}}", str(value)),
                )
            label = label.replace("{n}", "n")
            if training:
                made += f"\ndef train():\n    ({called}).sum().backward()"
            yield label + (", training" if training else ""), made, "train()" if training else called


def main() -> None:
    """Prints one table for each size, and the geometric mean of its ratios."""
    options = parser(__doc__)
    options.add_argument("--only", default="", help="regular expression: labels to measure")
    options.add_argument("--sizes", default=",".join(SIZES), help="names of sizes, divided by commas")
    options.add_argument("--above", type=float, default=0.0, help="print only rows whose ratio is above this")
    options.add_argument("--threads", type=int, help="of each library; its own default without")
    options.add_argument(
        "--limit", type=float, default=10.0, help="seconds of a row: slow ones are sampled less often"
    )
    options.add_argument(
        "--kept", type=Path, help="file of times: rows in it are not measured, new ones are added"
    )
    options.add_argument(
        "--again",
        type=float,
        help="measure rows of that file whose ratio is above this once more; each library keeps its lesser time",
    )
    options.add_argument(
        "--page", action="store_true", help="write that file's slow rows with their reasons into the page"
    )
    given = options.parse_args()
    kept = json.loads(given.kept.read_text(encoding="utf-8")) if given.kept and given.kept.exists() else {}

    def keep(row: str, times: dict[str, float]) -> None:
        kept[row] = times
        if given.kept:
            given.kept.write_text(json.dumps(kept, indent=0), encoding="utf-8")

    if given.page:
        write(kept, AIMS)
        return
    chosen = given.libraries.split(",")
    libraries = load(chosen, threads=given.threads)
    # What one thread computes is not to be longer for others' work on its core.
    clock = time.thread_time if given.threads == 1 else time.perf_counter
    for size in given.sizes.split(","):
        found: list[float] = []

        def rows(size: str = size, found: list[float] = found) -> Iterator[list[str]]:
            for label, setup, statement in cases(size):
                if given.only and not re.search(given.only, label):
                    continue
                try:
                    times = kept.get(f"{size}: {label}", {})
                    if not times or (given.again and times["taeda"] > given.again * times["torch"]):
                        new = statements_in_turn(
                            libraries, setup, statement, repeats=5, limit=given.limit, clock=clock
                        )
                        times = {name: min(time, times.get(name, time)) for name, time in new.items()}
                        keep(f"{size}: {label}", times)
                except Exception as error:
                    yield [label, failure(error), *[""] * len(chosen)]
                    continue
                if len(times) > 1:
                    found.append(times["taeda"] / times["torch"])
                    if found[-1] < given.above:
                        continue
                yield [label, *(f"{times[name] * 1e6:.1f}" for name in chosen), ratio(times)]

        table(f"Operators, {size}", ["operator", *(f"{name} us" for name in chosen), "ratio"], rows())
        if found:
            mean = math.exp(sum(map(math.log, found)) / len(found))
            slow = sum(value > 1.3 for value in found)
            print(
                f"\n{len(found)} rows: geometric mean {mean:.2f} (aim {AIMS[size]}), {slow} above 1.3\n",
                flush=True,
            )


if __name__ == "__main__":
    main()
