# SPDX-License-Identifier: Apache-2.0
"""The functions of torch.nn.functional, with its names, arguments and meanings.

	import yoke.nn.functional as F

	loss = F.cross_entropy(logits, ids, label_smoothing=0.1)

Arguments that PyTorch deprecates (size_average, reduce) are absent; reduction and the arguments after them are given by name.
`inplace` has no effect, because tensors are values.  Operands may be tensors, arrays or numbers.
"""
from __future__ import annotations

from .._creation import one_hot
from .._sampling import affine_grid, grid_sample, interpolate
from ._activations import (celu, elu, gelu, glu, gumbel_softmax, hardshrink, hardsigmoid, hardswish, hardtanh, leaky_relu, log_softmax,
                           logsigmoid, mish, prelu, relu, relu6, rrelu, selu, sigmoid, silu, softmax, softmin, softplus, softshrink,
                           softsign, tanh, tanhshrink, threshold)
from ._attention import multi_head_attention_forward, scaled_dot_product_attention
from ._linear import linear
from ._losses import (binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy, ctc_loss, gaussian_nll_loss, huber_loss,
                      kl_div, l1_loss, mse_loss, nll_loss, poisson_nll_loss, smooth_l1_loss)
from ._margins import (cosine_embedding_loss, cosine_similarity, hinge_embedding_loss, margin_ranking_loss, multi_margin_loss,
                       multilabel_margin_loss, multilabel_soft_margin_loss, normalize, pairwise_distance, pdist, soft_margin_loss,
                       triplet_margin_loss, triplet_margin_with_distance_loss)
from ._norm import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm

__all__ = [
    "affine_grid", "batch_norm", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "ctc_loss", "elu", "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm",
    "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss",
    "instance_norm", "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "local_response_norm",
    "log_softmax", "logsigmoid", "margin_ranking_loss", "mish", "mse_loss", "multi_head_attention_forward",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot",
    "pairwise_distance", "pdist", "poisson_nll_loss", "prelu", "relu", "relu6", "rms_norm", "rrelu",
    "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin",
    "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def __dir__() -> list[str]:
    return __all__
