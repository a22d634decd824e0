"""Which operators autocast runs in which precision; all others run in that of their arguments.

An operator is named by its schema's name, without overload; forms that write into `out` or into an argument are
left alone, since their result's dtype is given. A name stands for all overloads.
"""

from __future__ import annotations

#: Products, convolutions and attention: the chosen lower precision, where arguments are real floating and not float64.
LOWER = frozenset({
    "addbmm", "addmm", "baddbmm", "bmm", "chain_matmul", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "conv_tbc", "linear", "linalg_multi_dot", "linalg_vecdot",
    "lstm", "rnn_tanh", "rnn_relu", "rnn_tanh_cell", "rnn_relu_cell", "matmul", "mm", "multi_dot",
    "prelu", "scaled_dot_product_attention", "vecdot",
})  # fmt: skip

#: Where fewer bits lose too much: float32 for arguments of lower precision.
FLOAT32 = frozenset({
    "adaptive_avg_pool3d", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "avg_pool3d",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "bce_loss", "bce_with_logits_loss", "cdist",
    "cholesky", "cholesky_inverse", "cholesky_solve", "cosine_embedding_loss", "cross_entropy_loss",
    "ctc_loss", "fft_fft", "fft_fft2", "fft_fftn", "fft_hfft", "fft_hfft2", "fft_hfftn", "fft_ifft",
    "fft_ifft2", "fft_ifftn", "fft_ihfft", "fft_ihfft2", "fft_ihfftn", "fft_irfft", "fft_irfft2",
    "fft_irfftn", "fft_rfft", "fft_rfft2", "fft_rfftn", "fractional_max_pool2d", "fractional_max_pool3d",
    "geqrf", "grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "hinge_embedding_loss",
    "huber_loss", "inverse", "kl_div", "l1_loss", "linalg_cholesky", "linalg_cholesky_ex", "linalg_cond",
    "linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh", "linalg_householder_product",
    "linalg_inv", "linalg_inv_ex", "linalg_lstsq", "linalg_matrix_rank", "linalg_qr", "linalg_solve",
    "linalg_svd", "linalg_svdvals", "linalg_tensorinv", "linalg_tensorsolve", "lu_solve",
    "margin_ranking_loss", "max_pool3d", "max_unpool2d", "max_unpool3d", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "nanquantile", "nll_loss", "orgqr", "ormqr",
    "pinverse", "poisson_nll_loss", "polar", "prod", "qr", "quantile", "reflection_pad1d",
    "reflection_pad2d", "replication_pad1d", "replication_pad2d", "replication_pad3d", "smooth_l1_loss",
    "soft_margin_loss", "stft", "svd", "trace", "triangular_solve", "triplet_margin_loss",
    "view_as_complex",
})  # fmt: skip

#: What the modes of `pad` are called above; the others are not computed in float32.
PADDINGS = {"reflect": "reflection_pad", "replicate": "replication_pad"}

#: Layers that mix a state in place of replacing it: the precision of the state, which goes from step to step.
OF_STATE = {"gru": "hx"}

#: Tensors that are put together: the widest of their dtypes.
WIDEST = frozenset({"cat", "index_copy", "stack"})
