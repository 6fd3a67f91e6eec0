"""PyTorch FSDP2 with torch.distributed.checkpoint: a directory a step, `.metadata` is its marker."""

import checkpoints
import savegate_hook
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from training import Training

savegate_hook.fork_point()


def main():
    hook = savegate_hook.Hook(scopes=checkpoints.REPLICAS)
    training = Training(checkpoints.sharded)
    with hook.loading() as loading:
        loading.path = checkpoints.newest()
        if loading.path:
            checkpoints.load(training, loading.path)
            loading.restored(training.step, checkpoints.state_of(training), save=training.saves)
    while not hook.until_reached(training.saves):
        training.updates(hook)
        state = checkpoints.state_of(training)
        with hook.saving(training.step, state, save=training.saves):
            dcp.save(state, checkpoint_id=checkpoints.folder_of(training.step))
    hook.done()
    dist.destroy_process_group()


main()
