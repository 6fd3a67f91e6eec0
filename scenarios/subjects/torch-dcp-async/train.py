"""As torch-dcp, and the save goes on in a thread while the next updates run: dcp.async_save."""

import os
import pathlib
import pickle
import random

import numpy
import savegate_hook
import torch
import torch._dynamo  # the first update would import it
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

savegate_hook.fork_point()

ROOT = pathlib.Path(os.environ["SAVEGATE_DIR"])
DEVICE = os.environ.get("SAVEGATE_DEVICE", "cpu")
WIDTH, BATCH, UPDATES_A_SAVE = 512, 8, 2


class Training:
    def __init__(self, rank, world):
        torch.manual_seed(1)  # the same weights on every rank
        self.model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Dropout(0.1),
                                         torch.nn.Linear(WIDTH, WIDTH)).to(DEVICE)
        fully_shard(self.model, mesh=init_device_mesh(DEVICE, (world,)))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.95)
        self.rank, self.world, self.step = rank, world, 0
        self.data = torch.Generator().manual_seed(rank)
        torch.manual_seed(100 + rank)
        random.seed(rank)
        numpy.random.seed(rank)

    def update(self):
        scale = random.random() + numpy.random.random()
        inputs = scale * torch.randn(BATCH, WIDTH, generator=self.data).to(DEVICE)
        (self.model(inputs) - inputs.flip(1)).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.scheduler.step()
        first = (self.step * self.world + self.rank) * BATCH
        self.step += 1
        return [(first, first + BATCH - 1)]

    def state(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        rng = {"torch": torch.get_rng_state(), "data": self.data.get_state(),
               "python": pickle.dumps(random.getstate()),
               "numpy": pickle.dumps(numpy.random.get_state())}
        if DEVICE == "cuda":
            rng["cuda"] = torch.cuda.get_rng_state()
        return {"model": model, "optimizer": optimizer, "scheduler": self.scheduler.state_dict(),
                "counter": {"step": self.step}, "rng": {f"rank_{self.rank}": rng}}

    def load(self, folder):
        state = self.state()
        dcp.load(state, checkpoint_id=folder)
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"],
                       optim_state_dict=state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.step = state["counter"]["step"]
        rng = state["rng"][f"rank_{self.rank}"]
        torch.set_rng_state(rng["torch"])
        self.data.set_state(rng["data"])
        random.setstate(pickle.loads(rng["python"]))
        numpy.random.set_state(pickle.loads(rng["numpy"]))
        if DEVICE == "cuda":
            torch.cuda.set_rng_state(rng["cuda"])


def restore(training, hook):
    hook.load_begin()
    complete = {int(marker.parent.name[len("step_"):]) for marker in ROOT.glob("step_*/.metadata")}
    if not complete:
        hook.resumed(None)
        return
    folder = ROOT / f"step_{max(complete)}"
    try:
        training.load(folder)
    except BaseException as error:  # a CheckpointException is no Exception
        hook.resumed(None, path=folder, error=error)
        raise
    hook.resumed(training.step, items=training.state(), path=folder, save=training.step // UPDATES_A_SAVE)


def finish(pending):
    """Waits until the save in flight is complete, or has failed."""
    if pending is None:
        return
    saving, future = pending
    try:
        future.result()
    except BaseException as error:
        saving.durable(error)
        raise
    saving.durable()


def main():
    torch.set_num_threads(1)
    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if DEVICE == "cuda" else "gloo")
    savers = dist.new_group(backend="gloo")  # its collectives run beside those of the updates
    hook = savegate_hook.Hook(scopes={"scheduler": "replica", "counter": "replica"})
    training = Training(dist.get_rank(), dist.get_world_size())
    restore(training, hook)
    save, pending = training.step // UPDATES_A_SAVE, None
    while not hook.until_reached(save):
        for _ in range(UPDATES_A_SAVE):
            samples = training.update()
            hook.update(training.step, samples=samples)
        finish(pending)
        save += 1
        state = training.state()
        with hook.saving(training.step, state, save=save, asynchronous=True) as saving:
            folder = ROOT / f"step_{training.step}"
            future = dcp.async_save(state, checkpoint_id=folder, process_group=savers)
        pending = saving, future
    finish(pending)
    hook.done()
    dist.destroy_process_group()


main()
