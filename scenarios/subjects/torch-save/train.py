"""PyTorch, data parallel; every rank saves with torch.save and a rename, rank 0 then moves `latest`.

What many training scripts do: nothing is flushed to the disk, nothing is verified.

    train.py          trains under savegate
    train.py --read   prints what a fresh process finds in each checkpoint
"""

import os
import pathlib
import sys

import savegate_hook
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from training import Training

savegate_hook.fork_point()

ROOT = pathlib.Path(os.environ["SAVEGATE_DIR"])
REPLICAS = dict.fromkeys(("model", "optimizer", "scheduler", "counter"), "replica")


def state_of(training):
    return {"model": training.layers.state_dict(), "optimizer": training.optimizer.state_dict(),
            "scheduler": training.scheduler.state_dict(), "rng": training.rng(),
            "counter": {"step": training.step}, "contract": {"world": training.world}}


def path_of(folder, rank):
    return folder / f"rank_{rank}.pt"


def save(training):
    folder = ROOT / f"step_{training.step}"
    folder.mkdir(exist_ok=True)
    path = path_of(folder, training.rank)
    torch.save(state_of(training), f"{path}.tmp")
    os.rename(f"{path}.tmp", path)
    dist.barrier()
    if training.rank == 0:
        (ROOT / "latest.tmp").write_text(folder.name)
        (ROOT / "latest.tmp").rename(ROOT / "latest")
    dist.barrier()


def latest():
    return ROOT / (ROOT / "latest").read_text() if (ROOT / "latest").exists() else None


def load(folder, rank):
    return torch.load(path_of(folder, rank), map_location="cpu", weights_only=True)


def restore(training, state):
    training.layers.load_state_dict(state["model"])
    training.optimizer.load_state_dict(state["optimizer"])
    training.scheduler.load_state_dict(state["scheduler"])
    training.step = state["counter"]["step"]
    training.set_rng(state["rng"])


def train():
    hook = savegate_hook.Hook(scopes=REPLICAS)
    training = Training(DistributedDataParallel)
    with hook.loading() as loading:
        loading.path = latest()
        if loading.path:
            restore(training, load(loading.path, training.rank))
            loading.restored(training.step, state_of(training), save=training.saves)
    while not hook.until_reached(training.saves):
        training.updates(hook)
        with hook.saving(training.step, state_of(training), save=training.saves):
            save(training)
    hook.done()
    dist.destroy_process_group()


def read():
    for folder in ROOT.glob("step_*"):
        def ranks():
            for rank in range(load(folder, 0)["contract"]["world"]):
                yield rank, load(folder, rank)
        savegate_hook.print_checkpoint(folder, folder.name[len("step_"):], ranks, folder == latest())


read() if sys.argv[1:] == ["--read"] else train()
