"""A checkpoint as safetensors files: each rank writes its part of the tensors, rank 0 then their index.

The index names the file of each tensor, as that of a large model does, and is the marker. What is no
tensor is in the header of each file.
"""

import json
import os
import pathlib

import torch
import torch.distributed as dist
from safetensors import safe_open
from safetensors.torch import load_file, save_file

INDEX = "model.safetensors.index.json"


def complete():
    """The folders whose index is there, in the order of steps."""
    indices = pathlib.Path(os.environ["SAVEGATE_DIR"]).glob(f"step_*/{INDEX}")
    return sorted((index.parent for index in indices), key=step_of)


def step_of(folder):
    return int(folder.name[len("step_"):])


def save(step, state, rank, world):
    """`state`: by dotted names; those that begin with "rng" are the rank's own."""
    folder = pathlib.Path(os.environ["SAVEGATE_DIR"], f"step_{step}")
    folder.mkdir(exist_ok=True)
    tensors = [name for name, value in state.items() if isinstance(value, torch.Tensor)]
    mine = [name for number, name in enumerate(tensors)
            if number % world == rank or name.startswith("rng")]
    numbers = {name: value for name, value in state.items() if not isinstance(value, torch.Tensor)}
    file = f"model-{rank + 1:05}-of-{world:05}.safetensors"
    save_file({name: state[name] for name in mine}, folder / file, {"numbers": json.dumps(numbers)})
    parts = [None] * world
    dist.all_gather_object(parts, dict.fromkeys(mine, file))
    if rank == 0:
        index = {"weight_map": {name: file for part in parts for name, file in part.items()}}
        (folder / f"{INDEX}.tmp").write_text(json.dumps(index))
        (folder / f"{INDEX}.tmp").rename(folder / INDEX)
    dist.barrier()


def load(folder):
    """What is in each file, in the order of ranks; an error where a tensor is not in its file."""
    places = json.loads((folder / INDEX).read_text())["weight_map"]
    files = []
    for file in sorted(set(places.values())):
        tensors = load_file(folder / file)
        if set(tensors) != {name for name, place in places.items() if place == file}:
            raise ValueError(f"{folder / file} does not hold what the index says")
        with safe_open(folder / file, "pt") as opened:
            files.append({**tensors, **json.loads(opened.metadata()["numbers"])})
    return files
