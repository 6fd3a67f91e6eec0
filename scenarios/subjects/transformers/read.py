"""What a fresh process finds in each checkpoint that Trainer wrote, file by file."""

import json
import os
import pathlib
import sys

import savegate_hook
import torch
from transformers import GPT2LMHeadModel

savegate_hook.fork_point()

SEED = 1  # of the order of the samples, as in train.py


def parts(folder):
    """What rank 0 wrote for all, then the random states of each rank."""
    def loaded(name):
        return torch.load(folder / name, map_location="cpu", weights_only=False)

    model = GPT2LMHeadModel.from_pretrained(folder)  # tied weights are in the file once
    progress = json.loads((folder / "trainer_state.json").read_text())
    yield 0, {"model": model.state_dict(), "optimizer": loaded("optimizer.pt"),
              "scheduler": loaded("scheduler.pt"), "counter": {"step": progress["global_step"]},
              "rng": {"data": [SEED, int(progress["epoch"])]}}
    world = int(sys.argv[1])
    for rank in range(world):
        states = loaded(f"rng_state_{rank}.pth" if world > 1 else "rng_state.pth")
        streams = {"torch": states["cpu"], "python": states["python"], "numpy": states["numpy"]}
        if "cuda" in states:
            streams["cuda"] = states["cuda"]
        yield rank, {"rng": streams}


torch.set_num_threads(1)  # on a busy machine more of them wait for each other
# get_last_checkpoint() takes a directory by its name: each is announced by being there.
for folder in pathlib.Path(os.environ["SAVEGATE_DIR"]).glob("checkpoint-*"):
    savegate_hook.print_checkpoint(folder, folder.name[len("checkpoint-"):], lambda: parts(folder))
