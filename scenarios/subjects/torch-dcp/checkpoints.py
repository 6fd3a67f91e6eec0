"""What of a training is in a checkpoint of torch.distributed.checkpoint, and which one is the newest."""

import os
import pathlib

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

# But for the slices: one rank writes them for all.
REPLICAS = dict.fromkeys(("model", "optimizer", "scheduler", "counter"), "replica")


def sharded(layers):
    device = next(layers.parameters()).device.type  # else a GPU's, where there is one
    return fully_shard(layers, mesh=init_device_mesh(device, (dist.get_world_size(),)))


def state_of(training):
    model, optimizer = get_state_dict(training.model, training.optimizer)
    return {"model": model, "optimizer": optimizer, "scheduler": training.scheduler.state_dict(),
            "counter": {"step": training.step}, "rng": {f"rank_{training.rank}": training.rng()}}


def folder_of(step):
    return pathlib.Path(os.environ["SAVEGATE_DIR"], f"step_{step}")


def step_of(folder):
    return int(folder.name[len("step_"):])


def complete():
    """Those whose marker is there, in the order of steps."""
    markers = pathlib.Path(os.environ["SAVEGATE_DIR"]).glob("step_*/.metadata")
    return sorted((marker.parent for marker in markers), key=step_of)


def newest():
    return complete()[-1] if complete() else None


def load(training, folder):
    state = state_of(training)
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(training.model, training.optimizer, model_state_dict=state["model"],
                   optim_state_dict=state["optimizer"])
    training.scheduler.load_state_dict(state["scheduler"])
    training.step = state["counter"]["step"]
    training.set_rng(state["rng"][f"rank_{training.rank}"])
