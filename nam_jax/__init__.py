"""Neural Attention Memory for JAX: a memory to read, write and train."""

from nam_jax.baselines.dnc import DNC, DNCCell
from nam_jax.baselines.lru import LRU
from nam_jax.baselines.lstm_attention import LSTMAttention
from nam_jax.baselines.universal_transformer import UniversalTransformer
from nam_jax.layers.attention_fn import linear_attention_fn, nam_attention_fn
from nam_jax.layers.lsam import LSAM, LSAMCell
from nam_jax.layers.lstm import LSTM
from nam_jax.layers.nam_attention import NAMAttention
from nam_jax.layers.nam_heads import NAMState
from nam_jax.layers.nam_tm import NAMTuringMachine
from nam_jax.layers.presets import PRESETS
from nam_jax.layers.self_attention import SelfAttention
from nam_jax.layers.transformer import EncoderState, TransformerEncoder
from nam_jax.layers.transformer_block import BlockStyle, TransformerBlock
from nam_jax.ops.chunked import memory_chunked
from nam_jax.ops.derivatives import linearize
from nam_jax.ops.linear_attention import linear_attention
from nam_jax.ops.lsam import LSAMState
from nam_jax.ops.memory import read, write
from nam_jax.ops.memory_form import memory
from nam_jax.ops.normalize import unit
from nam_jax.ops.outer_product import outer_product_attention
from nam_jax.ops.recurrent import memory_scan
from nam_jax.ops.several_writes import memory_several_writes
from nam_jax.ops.sharded import (
  memory_sharded,
  outer_product_attention_sharded,
)
from nam_jax.ops.tape import (
  JUMP,
  LEFT,
  NO_OP,
  RIGHT,
  TRANSITIONS,
  Tape,
  Transition,
  rewind,
)
from nam_jax.ops.tensor import TensorMemory
from nam_jax.streaming import export_step, generate
from nam_jax.version import __version__

__all__ = [
  "DNC",
  "JUMP",
  "LEFT",
  "LRU",
  "LSAM",
  "LSTM",
  "NO_OP",
  "PRESETS",
  "RIGHT",
  "TRANSITIONS",
  "BlockStyle",
  "DNCCell",
  "EncoderState",
  "LSAMCell",
  "LSAMState",
  "LSTMAttention",
  "NAMAttention",
  "NAMState",
  "NAMTuringMachine",
  "SelfAttention",
  "Tape",
  "TensorMemory",
  "TransformerBlock",
  "TransformerEncoder",
  "Transition",
  "UniversalTransformer",
  "__version__",
  "export_step",
  "generate",
  "linear_attention",
  "linear_attention_fn",
  "linearize",
  "memory",
  "memory_chunked",
  "memory_scan",
  "memory_several_writes",
  "memory_sharded",
  "nam_attention_fn",
  "outer_product_attention",
  "outer_product_attention_sharded",
  "read",
  "rewind",
  "unit",
  "write",
]
