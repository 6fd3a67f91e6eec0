"""PyTorch, data parallel; every rank saves with torch.save and a rename, rank 0 then moves `latest`.

What many training scripts do: nothing is flushed to the disk, nothing is verified.
"""

import os
import pathlib
import pickle
import random

import numpy
import savegate_hook
import torch
import torch._dynamo  # the first update would import it
import torch.distributed as dist

savegate_hook.fork_point()

ROOT = pathlib.Path(os.environ["SAVEGATE_DIR"])
DEVICE = os.environ.get("SAVEGATE_DEVICE", "cpu")
WIDTH, BATCH, UPDATES_A_SAVE = 512, 8, 2
REPLICAS = ("model", "optimizer", "scheduler", "counter")


class Training:
    def __init__(self, rank, world):
        torch.manual_seed(1)  # the same weights on every rank
        self.layers = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Dropout(0.1),
                                          torch.nn.Linear(WIDTH, WIDTH)).to(DEVICE)
        self.model = torch.nn.parallel.DistributedDataParallel(self.layers)
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
        rng = {"torch": torch.get_rng_state(), "data": self.data.get_state(),
               "python": pickle.dumps(random.getstate()),
               "numpy": pickle.dumps(numpy.random.get_state())}
        if DEVICE == "cuda":
            rng["cuda"] = torch.cuda.get_rng_state()
        return {"model": self.layers.state_dict(), "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(), "counter": {"step": self.step}, "rng": rng}

    def load(self, state):
        self.layers.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.step = state["counter"]["step"]
        torch.set_rng_state(state["rng"]["torch"])
        self.data.set_state(state["rng"]["data"])
        random.setstate(pickle.loads(state["rng"]["python"]))
        numpy.random.set_state(pickle.loads(state["rng"]["numpy"]))
        if DEVICE == "cuda":
            torch.cuda.set_rng_state(state["rng"]["cuda"])


def save(training):
    folder = ROOT / f"step_{training.step}"
    folder.mkdir(exist_ok=True)
    temporary = folder / f"rank_{training.rank}.pt.tmp"
    torch.save(training.state(), temporary)
    temporary.rename(folder / f"rank_{training.rank}.pt")
    dist.barrier()
    if training.rank == 0:
        (ROOT / "latest.tmp").write_text(folder.name)
        (ROOT / "latest.tmp").rename(ROOT / "latest")
    dist.barrier()


def restore(training, hook):
    hook.load_begin()
    latest = ROOT / "latest"
    if not latest.exists():
        hook.resumed(None)
        return
    folder = ROOT / latest.read_text()
    try:
        path = folder / f"rank_{training.rank}.pt"
        training.load(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:
        hook.resumed(None, path=folder, error=error)
        raise
    hook.resumed(training.step, items=training.state(), path=folder, save=training.step // UPDATES_A_SAVE)


def main():
    torch.set_num_threads(1)
    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if DEVICE == "cuda" else "gloo")
    hook = savegate_hook.Hook(scopes=dict.fromkeys(REPLICAS, "replica"))
    training = Training(dist.get_rank(), dist.get_world_size())
    restore(training, hook)
    while not hook.until_reached(training.step // UPDATES_A_SAVE):
        for _ in range(UPDATES_A_SAVE):
            samples = training.update()
            hook.update(training.step, samples=samples)
        with hook.saving(training.step, training.state(), save=training.step // UPDATES_A_SAVE):
            save(training)
    hook.done()
    dist.destroy_process_group()


main()
