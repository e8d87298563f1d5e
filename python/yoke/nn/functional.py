# SPDX-License-Identifier: Apache-2.0
"""The functions of torch.nn.functional, with its names, arguments and meanings.

	import yoke.nn.functional as F

	loss = F.cross_entropy(logits, ids, label_smoothing=0.1)

Arguments that PyTorch deprecates (size_average, reduce) are absent; reduction and the arguments after them are given by name.
`inplace` has no effect, because tensors are values.  Operands may be tensors, arrays or numbers.
"""
from __future__ import annotations

from .._creation import one_hot
from .._sampling import affine_grid, fold, grid_sample, interpolate, unfold
from ._activations import (celu, elu, gelu, glu, gumbel_softmax, hardshrink, hardsigmoid, hardswish, hardtanh, leaky_relu, log_softmax,
                           logsigmoid, mish, prelu, relu, relu6, rrelu, selu, sigmoid, silu, softmax, softmin, softplus, softshrink,
                           softsign, tanh, tanhshrink, threshold)
from ._attention import multi_head_attention_forward, scaled_dot_product_attention
from ._conv import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from ._dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from ._linear import bilinear, embedding, embedding_bag, linear
from ._losses import (binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, ctc_loss, gaussian_nll_loss, huber_loss,
                      kl_div, l1_loss, mse_loss, nll_loss, poisson_nll_loss, smooth_l1_loss)
from ._margins import (cosine_embedding_loss, cosine_similarity, hinge_embedding_loss, margin_ranking_loss, multi_margin_loss,
                       multilabel_margin_loss, multilabel_soft_margin_loss, normalize, pairwise_distance, pdist, soft_margin_loss,
                       triplet_margin_loss, triplet_margin_with_distance_loss)
from ._norm import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm
from ._padding import pad
from ._pooling import (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d,
                       adaptive_max_pool3d, avg_pool1d, avg_pool2d, avg_pool3d, lp_pool1d, lp_pool2d, lp_pool3d, max_pool1d, max_pool2d,
                       max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d)
from ._shaping import channel_shuffle, pixel_shuffle, pixel_unshuffle

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "cross_entropy",
    "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "embedding", "embedding_bag",
    "feature_alpha_dropout", "fold", "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm",
    "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "local_response_norm", "log_softmax",
    "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d",
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "rms_norm", "rrelu",
    "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin",
    "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "unfold",
]


def __dir__() -> list[str]:
    return __all__
