# SPDX-License-Identifier: Apache-2.0
"""Modules and layers, as in torch.nn; the C library's are in yoke-nn.h.  A network is a class whose attributes are modules and
parameters.

	class Net(yoke.nn.Module):
	    def __init__(self) -> None:
	        self.up = yoke.nn.Linear(64, 128)
	        self.down = yoke.nn.Linear(128, 10)

	    def forward(self, x: yoke.Tensor) -> yoke.Tensor:
	        return self.down(self.up(x).relu())

A parameter's name is its path of attributes, "up.weight", also in files.
"""
from __future__ import annotations

from . import functional as functional, init as init
from ._activations import (CELU, ELU, GELU, GLU, SELU, Activation, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid,
                           LogSoftmax, Mish, PReLU, ReLU, ReLU6, RReLU, Sigmoid, SiLU, Softmax, Softmax2d, Softmin, Softplus,
                           Softshrink, Softsign, Tanh, Tanhshrink, Threshold)
from ._attention import Attention, Block, MultiheadAttention
from ._containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Residual, Sequential
from ._conv import (Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, ConvTransposed1d, ConvTransposed2d,
                    ConvTransposed3d, Fold, Unfold)
from ._dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout
from ._linear import MLP, Bilinear, Embedding, EmbeddingBag, Linear, LoRA
from ._losses import (BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, CTCLoss, GaussianNLLLoss, HuberLoss, KLDivLoss, L1Loss, MSELoss,
                      NLLLoss, PoissonNLLLoss, SmoothL1Loss)
from ._margins import (CosineEmbeddingLoss, CosineSimilarity, HingeEmbeddingLoss, MarginRankingLoss, MultiLabelMarginLoss,
                       MultiLabelSoftMarginLoss, MultiMarginLoss, PairwiseDistance, SoftMarginLoss, TripletMarginLoss,
                       TripletMarginWithDistanceLoss)
from ._module import Buffer, Module, Parameter
from ._norm import (BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d,
                    LayerNorm, LocalResponseNorm, RMSNorm)
from ._padding import (CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d,
                       ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d, ReplicationPad3d,
                       ZeroPad1d, ZeroPad2d, ZeroPad3d)
from ._pooling import (AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
                       AdaptiveMaxPool3d, AdaptiveMeanPool, AvgPool1d, AvgPool2d, AvgPool3d, LPPool1d, LPPool2d, LPPool3d, MaxPool,
                       MaxPool1d, MaxPool2d, MaxPool3d,
                       MaxUnpool1d, MaxUnpool2d, MaxUnpool3d, MeanPool, Resize, Upsample,
                       UpsamplingBilinear2d, UpsamplingNearest2d)
from ._recurrent import GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCell
from ._sequences import (PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence, unpack_sequence,
                         unpad_sequence)
from ._shaping import ChannelShuffle, Flatten, Identity, PixelShuffle, PixelUnshuffle, Unflatten
from ._transformer import (Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
                           TransformerEncoderLayer)

__all__ = [
    "Activation", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdaptiveMeanPool", "AlphaDropout", "Attention", "AvgPool1d", "AvgPool2d",
    "AvgPool3d", "BCELoss", "BCEWithLogitsLoss", "BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear",
    "Block", "Buffer", "CELU", "CTCLoss", "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d",
    "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
    "ConvTranspose3d", "ConvTransposed1d", "ConvTransposed2d", "ConvTransposed3d", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU", "Embedding", "EmbeddingBag",
    "FeatureAlphaDropout", "Flatten", "Fold", "GELU", "GLU", "GRU", "GRUCell", "GaussianNLLLoss", "GroupNorm", "Hardshrink",
    "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss", "Identity", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "KLDivLoss", "L1Loss", "LPPool1d", "LPPool2d", "LPPool3d", "LSTM", "LSTMCell", "LayerNorm", "LeakyReLU",
    "Linear", "LoRA", "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "MLP", "MSELoss", "MarginRankingLoss", "MaxPool",
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "MeanPool", "Mish", "Module",
    "ModuleDict", "ModuleList", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "MultiheadAttention",
    "NLLLoss", "PReLU", "PackedSequence", "PairwiseDistance", "Parameter", "ParameterDict", "ParameterList", "PixelShuffle",
    "PixelUnshuffle", "PoissonNLLLoss", "RMSNorm", "RNN", "RNNCell", "RReLU", "ReLU", "ReLU6", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Residual", "Resize",
    "SELU", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin", "Softplus",
    "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold", "Transformer", "TransformerDecoder",
    "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d", "functional", "init", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]


def __dir__() -> list[str]:
    return __all__
