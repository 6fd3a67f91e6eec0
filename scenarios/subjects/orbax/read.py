"""What a fresh process, without the others, finds in each checkpoint: every process' rows of it."""

import os
import pathlib

import jax
import numpy
import orbax.checkpoint as ocp
import savegate_hook

savegate_hook.fork_point()


def rows(folder):
    """Each rank's part, as it held it."""
    numbers = ocp.Checkpointer(ocp.JsonCheckpointHandler()).restore(folder / "numbers")
    handler = ocp.PyTreeCheckpointer()
    tree = handler.metadata(folder / "state").item_metadata.tree
    like = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=numpy.ndarray), tree)
    arrays = handler.restore(folder / "state", restore_args=like)
    yield 0, {**numbers, "rng": {"jax": arrays["rng"].pop("jax")}}
    world = numbers["contract"]["world"]
    for rank in range(world):
        def own(array):
            count = len(array) // world
            part = array[rank * count:(rank + 1) * count]
            return savegate_hook.Shard(part, array.shape, [rank * count] + [0] * (array.ndim - 1))
        yield rank, jax.tree.map(own, arrays)


jax.config.update("jax_platforms", "cpu")
for folder in pathlib.Path(os.environ["SAVEGATE_DIR"]).glob("step_*"):
    number = folder.name[len("step_"):]
    if number.isdigit():
        savegate_hook.print_checkpoint(folder, number, lambda: rows(folder))
