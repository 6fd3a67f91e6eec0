"""As torch-dcp, and the save goes on in a thread while the next updates run: dcp.async_save."""

import time
import weakref

import checkpoints
import savegate_hook
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.utils._pytree import tree_leaves
from training import Training

savegate_hook.fork_point()


class Stager(DefaultStager):
    """The one that async_save takes by itself; it remembers what it made, to tell what is held of it."""

    made = weakref.WeakSet()

    def __init__(self):
        super().__init__(StagingOptions(False, False, False, False))

    def stage(self, state):
        staged = super().stage(state)
        tensors = [leaf for leaf in tree_leaves(staged) if isinstance(leaf, torch.Tensor)]
        self.made.update(getattr(tensor, "_local_tensor", tensor) for tensor in tensors)
        return staged

    @classmethod
    def held(cls):
        """Bytes."""
        return sum(tensor.untyped_storage().nbytes() for tensor in cls.made)

    @classmethod
    def kept(cls):
        """Bytes, once the thread that has written has had the time to end."""
        patience = time.monotonic() + 1
        while cls.held() and time.monotonic() < patience:
            time.sleep(0.001)
        return cls.held()


def finish(pending, hook):
    """Waits until the save in flight is complete, or has failed."""
    if pending is None:
        return
    step, saving, future = pending
    try:
        future.result()
    except BaseException as error:  # a CheckpointException is no Exception
        saving.durable(error)
        raise
    saving.durable()
    hook.memory("save", step, host_staging=Stager.kept())


def main():
    hook = savegate_hook.Hook(scopes=checkpoints.REPLICAS)
    training = Training(checkpoints.sharded)
    savers = dist.new_group(backend="gloo")  # its collectives run beside those of the updates
    hook.memory("before load")
    with hook.loading() as loading:
        loading.path = checkpoints.newest()
        if loading.path:
            checkpoints.load(training, loading.path)
            loading.restored(training.step, checkpoints.state_of(training), save=training.saves)
    hook.memory("load", training.step)
    pending = None
    while not hook.until_reached(training.saves):
        training.updates(hook)
        finish(pending, hook)
        pending = None
        state = checkpoints.state_of(training)
        hook.memory("before save", training.step, host_staging=Stager.held())
        with hook.saving(training.step, state, save=training.saves, asynchronous=True) as saving:
            future = dcp.async_save(state, checkpoint_id=checkpoints.folder_of(training.step),
                                    process_group=savers, async_stager=Stager())
        hook.memory("snapshot", training.step, host_staging=Stager.held())
        pending = training.step, saving, future
    finish(pending, hook)
    hook.done()
    dist.destroy_process_group()


main()
