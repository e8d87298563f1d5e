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

from ._attention import Attention, Block
from ._containers import ModuleDict, ModuleList, Residual, Sequential
from ._conv import (Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, ConvTransposed1d, ConvTransposed2d,
                    ConvTransposed3d, Fold, Unfold)
from ._elementwise import GELU, Activation, Dropout, Flatten, Identity, ReLU, SiLU, Sigmoid, Tanh
from ._linear import MLP, Embedding, EmbeddingBag, Linear, LoRA
from ._module import Buffer, Module, Parameter
from ._norm import BatchNorm, BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm, RMSNorm
from ._pooling import (AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
                       AdaptiveMaxPool3d, AdaptiveMeanPool, AvgPool1d, AvgPool2d, AvgPool3d, MaxPool, MaxPool1d, MaxPool2d, MaxPool3d,
                       MaxUnpool1d, MaxUnpool2d, MaxUnpool3d, MeanPool, Resize, Upsample)
from ._recurrent import GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCell
from ._sequences import (PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence, unpack_sequence,
                         unpad_sequence)

__all__ = [
    "Activation", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdaptiveMeanPool", "Attention", "AvgPool1d",
    "AvgPool2d", "AvgPool3d", "BatchNorm", "BatchNorm1d", "BatchNorm2d", "Block", "Buffer", "Conv1d", "Conv2d",
    "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "ConvTransposed1d", "ConvTransposed2d",
    "ConvTransposed3d", "Dropout", "Embedding", "EmbeddingBag", "Flatten", "Fold", "GELU", "GRU", "GRUCell", "GroupNorm",
    "Identity", "LSTM", "LSTMCell", "LayerNorm", "Linear", "LoRA", "MLP", "MaxPool", "MaxPool1d", "MaxPool2d", "MaxPool3d",
    "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "MeanPool", "Module", "ModuleDict", "ModuleList", "PackedSequence", "Parameter",
    "RMSNorm", "RNN", "RNNCell", "ReLU", "Residual", "Resize", "Sequential", "SiLU", "Sigmoid", "Tanh", "Unfold", "Upsample",
    "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]


def __dir__() -> list[str]:
    return __all__
