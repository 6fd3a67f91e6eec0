"""JAX with Orbax's CheckpointManager: an asynchronous save a step, several processes, no accelerator."""

import os
import random

import jax
import numpy
import orbax.checkpoint as ocp
import savegate_hook
from state import BATCH, WIDTH, Sharding, compiled_update, fresh, set_streams, streams

savegate_hook.fork_point()

UPDATES_A_SAVE = 2


class Training:
    def __init__(self, rank, world):
        self.sharding, self.rank, self.world = Sharding(), rank, world
        self.arrays, self.data = fresh(self.sharding, rank, world)
        self.numbers = {"scheduler": {"rate": 0.1}, "counter": {"step": 0}, "contract": {"world": world}}
        self.updated = compiled_update(self.sharding)

    @property
    def step(self):
        return self.numbers["counter"]["step"]

    @property
    def saves(self):
        return self.step // UPDATES_A_SAVE

    def update(self):
        scale = random.random() + numpy.random.random_sample()
        batch = self.data.random_sample((BATCH, WIDTH)).astype(numpy.float32)
        arrays, scheduler = self.arrays, self.numbers["scheduler"]
        model, optimizer, key = self.updated(arrays["model"], arrays["optimizer"], arrays["rng"]["jax"],
                                             scheduler["rate"], self.sharding.sliced(scale * batch))
        self.arrays = {"model": model, "optimizer": optimizer,
                       "rng": {"jax": key, **streams(self.sharding, self.data)}}
        scheduler["rate"] *= 0.95
        first = (self.step * self.world + self.rank) * BATCH
        self.numbers["counter"]["step"] += 1
        return [(first, first + BATCH - 1)]

    def state(self):
        return {**self.arrays, **self.numbers}

    def save(self, manager):
        manager.save(self.step, args=ocp.args.Composite(state=ocp.args.StandardSave(self.arrays),
                                                        numbers=ocp.args.JsonSave(self.numbers)))

    def restore(self, manager, step):
        like = jax.tree.map(ocp.utils.to_shape_dtype_struct, self.arrays)
        restored = manager.restore(step, args=ocp.args.Composite(state=ocp.args.StandardRestore(like),
                                                                 numbers=ocp.args.JsonRestore()))
        self.arrays, self.numbers = restored["state"], restored["numbers"]
        set_streams(self.arrays["rng"], self.data)


def finish(pending, manager):
    """Waits until the save in flight is complete, or has failed."""
    if pending is None:
        return
    try:
        manager.wait_until_finished()
    except BaseException as error:
        pending.durable(error)
        raise
    pending.durable()


def main():
    hook = savegate_hook.Hook(scopes=dict.fromkeys(("scheduler", "counter"), "replica"))
    jax.config.update("jax_platforms", "cpu")
    jax.distributed.initialize("{MASTER_ADDR}:{MASTER_PORT}".format(**os.environ), hook.world, hook.rank)
    training = Training(hook.rank, hook.world)
    options = ocp.CheckpointManagerOptions(step_prefix="step")
    with ocp.CheckpointManager(hook.directory, options=options) as manager:
        with hook.loading() as loading:
            newest = manager.latest_step()
            if newest is not None:
                loading.path = f"step_{newest}"
                training.restore(manager, newest)
                loading.restored(training.step, training.state(), save=training.saves)
        pending = None
        while not hook.until_reached(training.saves):
            for _ in range(UPDATES_A_SAVE):
                samples = training.update()
                hook.update(training.step, samples=samples)
            finish(pending, manager)
            with hook.saving(training.step, training.state(), training.saves, asynchronous=True) as pending:
                training.save(manager)
        finish(pending, manager)
    hook.done()


main()
