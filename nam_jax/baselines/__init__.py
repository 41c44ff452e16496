"""The paper's baselines, besides the plain Transformer, and later ones."""

from nam_jax.baselines.dnc import DNC, DNCCell, DNCState
from nam_jax.baselines.lru import LRU
from nam_jax.baselines.lstm_attention import LSTMAttention
from nam_jax.baselines.universal_transformer import UniversalTransformer

__all__ = [
  "DNC",
  "LRU",
  "DNCCell",
  "DNCState",
  "LSTMAttention",
  "UniversalTransformer",
]
