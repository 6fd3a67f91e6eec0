"""A small training in JAX: its state, sharded over the processes, and an update that depends on all of it."""

import random

import jax
import jax.numpy as jnp
import jaxlib.mlir.dialects.mhlo  # the first update would import it
import numpy
from jax.sharding import NamedSharding, PartitionSpec

WIDTH, BATCH = 512, 8
STREAMS = ("python", "numpy", "data")


class Sharding:
    """Over one axis of all processes' devices."""

    def __init__(self):
        mesh = jax.make_mesh((jax.device_count(),), ("shard",))
        self.rows = NamedSharding(mesh, PartitionSpec("shard"))
        self.replica = NamedSharding(mesh, PartitionSpec())

    def of_state(self):
        weights = {"first": self.rows, "second": self.rows}
        return {"model": weights, "optimizer": weights,
                "rng": {"jax": self.replica, **dict.fromkeys(STREAMS, self.rows)}}

    def sliced(self, local):
        """The array of which this process holds these rows."""
        return jax.make_array_from_process_local_data(self.rows, local)


def fresh(sharding, rank, world):
    rows = numpy.random.default_rng(rank).standard_normal((2, WIDTH // world, WIDTH), numpy.float32) / 32
    model = {"first": sharding.sliced(rows[0]), "second": sharding.sliced(rows[1])}
    random.seed(rank)
    numpy.random.seed(rank)
    data = numpy.random.RandomState(100 + rank)
    optimizer = {name: sharding.sliced(numpy.zeros_like(rows[0])) for name in model}
    key = jax.device_put(numpy.arange(4, dtype=numpy.uint32), sharding.replica)
    return {"model": model, "optimizer": optimizer, "rng": {"jax": key, **streams(sharding, data)}}, data


def streams(sharding, data):
    """The host's streams of random numbers as arrays with a row a process."""
    def packed(words, position):
        return sharding.sliced(numpy.array([[*words, position]], numpy.uint32))

    *words, position = random.getstate()[1]
    return {"python": packed(words, position), "numpy": packed(*numpy.random.get_state()[1:3]),
            "data": packed(*data.get_state()[1:3])}


def set_streams(rng, data):
    words = {name: rng[name].addressable_data(0)[0].tolist() for name in STREAMS}
    random.setstate((3, tuple(words["python"]), None))
    for stream, name in ((numpy.random, "numpy"), (data, "data")):
        stream.set_state(("MT19937", words[name][:-1], words[name][-1]))


def updated(model, optimizer, key, rate, inputs):
    # The generator of the hardware, or of XLA: jax.random's is three times as long in compiling.
    key, drawn = jax.lax.rng_bit_generator(key, (WIDTH,), jnp.uint32)
    kept = drawn > 0.1 * 2**32

    def loss(model):
        return jnp.square(inputs @ model["first"] * kept @ model["second"] - inputs).mean()

    optimizer = jax.tree.map(lambda m, g: 0.9 * m + g, optimizer, jax.grad(loss)(model))
    model = jax.tree.map(lambda w, m: w - rate * m, model, optimizer)
    return model, optimizer, key


def compiled_update(sharding):
    """Compiled soon rather than well: each life does it again."""
    weights = sharding.of_state()["model"]
    return jax.jit(updated, out_shardings=(weights, weights, sharding.replica),
                   compiler_options={"xla_backend_optimization_level": 0})
