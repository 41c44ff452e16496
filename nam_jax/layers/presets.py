"""Published memories as settings of `NAMAttention`.

  layer = NAMAttention(num_heads=4, **PRESETS["kda"])

One step covers them all. A memory fades, erases along the key, and writes:

  M <- M diag(a),   M <- M + (p_w v - M (p_e k)) k^T,   o = M q

They differ in the decay a and the gates, which are computed from the token
unless noted otherwise:

  nam              a = 1; p_w and p_e per head (Nam and Seo 2023, 2302.09422)
  deltanet         a = 1; p_w = p_e per head (Yang et al. 2024, 2406.06484)
  gated_deltanet   a and p_w = p_e per head (Yang et al. 2024, 2412.06464)
  kda              a per key channel, p_w = p_e per head (Kimi Delta Attention,
                   Kimi Team 2025, 2510.26692)
  gated_deltanet2  a and p_e per key channel, p_w per value channel (Hatamizadeh
                   et al. 2026, 2605.22791)
  gla              a per key channel; p_w = 1, p_e = 0 (Gated Linear Attention,
                   Yang et al. 2023, 2312.06635)
  retnet           a constant per head; p_w = 1, p_e = 0 (Sun et al. 2023,
                   2307.08621)

Everything else is that of `NAMAttention`. So queries and keys have unit length
also in gla and retnet, which scale queries instead, and retnet does not rotate
them; keys and values have the same width; projections have full rank, where kda
and gla compute decays (kda also output gates) through a narrow layer; and a
decay starts from the time scales of `nam_jax.layers.decay`. With `max_erase=2`,
a DeltaNet has eigenvalues between -1 and 1 (Grazzi et al. 2024, 2411.12537).

Two more are ours, for reading whole sequences, as classifiers do: half of the
heads run from the last token to the first, and a, per key channel, is trained
but the same for all tokens.

  nam_decay        p_w = 1, p_e = 0
  nam_full         p_w and p_e per head
"""

from typing import Any

_DELTA = {
  "mode": "erase",
  "tied_gates": True,
  "convolution": 4,
  "output_norm": True,
}
_BOTH_WAYS = {
  "bidirectional": True,
  "decay": "channel",
  "decay_from": "learned",
  "output_norm": True,
  "output_gate": "silu",
}

PRESETS: dict[str, dict[str, Any]] = {
  "nam": {"mode": "erase"},
  "nam_decay": {"mode": "causal", **_BOTH_WAYS},
  "nam_full": {"mode": "erase", **_BOTH_WAYS},
  "deltanet": _DELTA,
  "gated_deltanet": {**_DELTA, "decay": "head", "output_gate": "silu"},
  "kda": {**_DELTA, "decay": "channel", "output_gate": "sigmoid"},
  "gated_deltanet2": {
    "mode": "erase",
    "gates": "channel",
    "decay": "channel",
    "convolution": 4,
    "output_norm": True,
    "output_gate": "silu",
  },
  "gla": {
    "mode": "causal",
    "decay": "channel",
    "output_norm": True,
    "output_gate": "silu",
  },
  "retnet": {
    "mode": "causal",
    "decay": "head",
    "decay_from": "fixed",
    "output_norm": True,
    "output_gate": "silu",
  },
}
