"""Where arrays live: the batch is split over all devices, the rest is copied.

There is one mesh with the single axis "data" over the devices of all
processes. The training state is replicated; every device holds an equal share
of a batch's rows. `jax.jit` does the rest.
"""

import os
from collections.abc import Mapping

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from nam_jax.training import peers
from nam_jax.training.errors import UserError


def connect() -> None:
  """Joins the other processes of the run, if the environment names them.

  Every process sets JAX_COORDINATOR_ADDRESS (host:port of process 0),
  JAX_NUM_PROCESSES and its own JAX_PROCESS_ID. Call it before any computation.
  From then on, the death of a process ends the others; see `peers`.
  """
  if "JAX_COORDINATOR_ADDRESS" not in os.environ:
    return
  try:
    num_processes = int(os.environ["JAX_NUM_PROCESSES"])
    process_id = int(os.environ["JAX_PROCESS_ID"])
  except (KeyError, ValueError) as error:
    raise UserError(
      "JAX_COORDINATOR_ADDRESS is set, so JAX_NUM_PROCESSES and"
      " JAX_PROCESS_ID must be set to integers"
    ) from error
  address = os.environ["JAX_COORDINATOR_ADDRESS"]
  host, _, port = address.rpartition(":")
  if not host or not port.isdecimal():
    raise UserError(f"JAX_COORDINATOR_ADDRESS={address} is not host:port")
  peers.join(host, int(port), num_processes, process_id)


def is_main() -> bool:
  """Whether this process writes the files and prints."""
  return jax.process_index() == 0


def wait_for_all(name: str) -> None:
  """Blocks until every process has got here."""
  if jax.process_count() > 1:
    multihost_utils.sync_global_devices(name)


def told_by_main(value: bool) -> bool:
  """What the main process passes; all processes must call it."""
  if jax.process_count() == 1:
    return value
  return bool(multihost_utils.broadcast_one_to_all(np.int32(value)))


def replicated() -> NamedSharding:
  """The same array on every device."""
  return NamedSharding(_mesh(), PartitionSpec())


def by_rows() -> NamedSharding:
  """The leading axis split over the devices."""
  return NamedSharding(_mesh(), PartitionSpec("data"))


def check_batch_size(batch_size: int, accumulate_steps: int = 1) -> None:
  """Raises unless every device gets the same number of rows."""
  devices = jax.device_count()
  if batch_size % (devices * accumulate_steps):
    raise UserError(
      f"batch_size={batch_size} must be a multiple of {devices} devices times"
      f" accumulate_steps={accumulate_steps}"
    )


def place(batch: Mapping[str, np.ndarray]) -> dict[str, Array]:
  """This process's rows of a batch, as part of arrays over all devices."""
  sharding = by_rows()
  return {
    name: jax.make_array_from_process_local_data(sharding, rows)
    for name, rows in batch.items()
  }


def _mesh():
  return Mesh(np.asarray(jax.devices()), ("data",))
