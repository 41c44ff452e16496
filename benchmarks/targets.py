"""Compiles for a GPU or TPU that this machine need not have.

  python -m benchmarks.targets H100 '[["memory", "forward"]]'

Prints one line of JSON for each program and task; nothing is executed. The
process must be new: what it compiles for is set in its environment, libtpu
allows one process at a time, and a compiler may crash.
`python -m benchmarks.accelerators` starts it.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
from jax.experimental import topologies

from benchmarks import hlo, programs

_HOST = {"JAX_PLATFORMS": "cpu"}
_TPU = {
  "TPU_SKIP_MDS_QUERY": "1",  # asks the cloud about the machine
  "TPU_ACCELERATOR_TYPE": "v5litepod-4",
  "TPU_WORKER_HOSTNAMES": "localhost",
  "TPU_WORKER_ID": "0",
}


class Target(NamedTuple):
  """What to compile for, and how to read the compiler's estimates."""

  platform: str
  topology: Mapping[str, Any]  # arguments of `get_topology_desc`
  environment: Mapping[str, str]
  options: Mapping[str, Any]  # of the compiler
  estimate: Callable[[str], float]
  per_microsecond: float  # units of the estimate

  def devices(self) -> list[jax.Device]:
    """Four devices of this kind, which cannot run anything."""
    topology = topologies.get_topology_desc(
      platform=self.platform, **self.topology
    )
    return list(topology.devices)


def _text_proto(fields: Mapping[str, Any]) -> str:
  """The fields as text; a list is a field that is repeated."""
  parts = []
  for name, values in fields.items():
    for value in values if isinstance(values, list) else [values]:
      if isinstance(value, dict):
        parts.append(f"{name} {{ {_text_proto(value)} }}")
      else:
        parts.append(f"{name}: {value}")
  return " ".join(parts)


def _nvidia(name, capability, options, **device):
  """A GPU by its data sheet; the limits below are those of all recent ones."""
  limits = {
    "threads_per_block_limit": 1024,
    "threads_per_warp": 32,
    "threads_per_core_limit": 2048,
    "block_dim_limit_x": 2**31 - 1,
    "block_dim_limit_y": 2**16 - 1,
    "block_dim_limit_z": 2**16 - 1,
    "thread_dim_limit_x": 1024,
    "thread_dim_limit_y": 1024,
    "thread_dim_limit_z": 64,
    "registers_per_core_limit": 2**16,
    "registers_per_block_limit": 2**16,
    "shared_memory_per_block": 48 * 2**10,
  }
  config = {
    "gpu_device_info": {
      **limits,
      **device,
      "cuda_compute_capability": capability,
    },
    "platform_name": '"CUDA"',
    "dnn_version_info": {"major": 9, "minor": 10},
    "device_description_str": f'"{name}"',
  }
  topology = {
    "topology_name": "",
    "topology": "1x1x4",
    "target_config": _text_proto(config),
  }
  return Target("cuda", topology, {}, options, hlo.microseconds, 1)


def _rates(clock, units, operations):
  """Operations per clock tick and unit, by XLA's number of a type."""
  number = {"f16": 10, "f32": 11, "f64": 12, "bf16": 16}
  return {
    "rate_infos": [
      {
        "key": number[name],
        "value": {
          "clock_rate_ghz": clock,
          "units_per_core": units[name],
          "ops_per_clock": per_clock,
        },
      }
      for name, per_clock in operations.items()
    ]
  }


TARGETS = {
  # XLA has no table of costs for it, so there are no estimates.
  "A100": _nvidia(
    "NVIDIA A100-SXM4-80GB",
    {"major": 8},
    {},
    core_count=108,
    fpus_per_core=64,
    clock_rate_ghz=1.41,
    memory_bandwidth=2_039_040_000_000,
    device_memory_size=85_100_068_864,
    l2_cache_size=40 * 2**20,
    shared_memory_per_core=164 * 2**10,
    shared_memory_per_block_optin=163 * 2**10,
  ),
  "H100": _nvidia(
    "NVIDIA H100 80GB HBM3",
    {"major": 9, "feature_extension": "ACCELERATED_FEATURES"},
    {"xla_gpu_collect_cost_model_stats": True},
    core_count=132,
    fpus_per_core=128,
    clock_rate_ghz=1.98,
    memory_bandwidth=3_352_320_000_000,
    device_memory_size=84_942_979_072,
    l2_cache_size=50 * 2**20,
    shared_memory_per_core=228 * 2**10,
    shared_memory_per_block_optin=227 * 2**10,
    scalar_unit_description=_rates(
      1.98,
      {"f16": 128, "f32": 128, "f64": 64, "bf16": 128},
      {"f16": 2, "f32": 1, "f64": 1, "bf16": 2},
    ),
    matrix_unit_description=_rates(
      1.83,
      {"f16": 4, "f32": 4, "f64": 4, "bf16": 4},
      {"f16": 512, "f32": 256, "f64": 32, "bf16": 512},
    ),
  ),
  "v5e": Target(
    "tpu", {"topology_name": "v5e:2x2"}, _TPU, {}, hlo.cycles, 1_500
  ),
}


def environment(name: str, given: Mapping[str, str]) -> dict[str, str]:
  """The environment for a process that compiles for the target."""
  return {**given, **_HOST, **TARGETS[name].environment}


def figures(
  target: Target, program: programs.Program, task: str
) -> dict[str, Any]:
  """Compiles a program and says what it executes.

  Returns:
    `loops` and `operations` as in `hlo.Count`, `temporary_mib`, and
    `microseconds`, which is None where the compiler made no estimate.
  """
  lowered = jax.jit(program.task(task)).lower(*program.arguments)
  estimates = True
  try:
    compiled = lowered.compile(dict(target.options))
  except jax.errors.JaxRuntimeError:
    # Without a GPU to try them on, XLA may choose tiles that do not fit; calls
    # into a library have none, and no estimate either.
    if target.platform != "cuda":
      raise
    compiled = lowered.compile({"xla_gpu_enable_triton_gemm": False})
    estimates = False
  found = hlo.count(compiled.as_text(), target.estimate)
  time = found.estimate / target.per_microsecond
  return {
    "loops": found.loops,
    "operations": found.operations,
    "temporary_mib": compiled.memory_analysis().temp_size_in_bytes / 2**20,
    "microseconds": time if estimates and time else None,
  }


def main(name: str, jobs: Sequence[tuple[str, str]]) -> None:
  """Compiles pairs of programs and tasks for one target."""
  target = TARGETS[name]
  devices = target.devices()
  for program, task in jobs:
    line = {"program": program, "task": task}
    made = programs.PROGRAMS[program](devices)
    try:
      line |= figures(target, made, task)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
      line["error"] = str(error).strip().splitlines()[0]
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
  main(sys.argv[1], json.loads(sys.argv[2]))
