"""What a fresh process finds in each directory that save_state wrote, file by file."""

import os
import pathlib
import sys

import savegate_hook
import torch
from safetensors.torch import load_file

savegate_hook.fork_point()


def parts(folder):
    """What rank 0 wrote for all, then the random states of each rank."""
    def loaded(name):
        return torch.load(folder / name, map_location="cpu", weights_only=False)

    progress = loaded("custom_checkpoint_0.pkl")
    yield 0, {"model": load_file(folder / "model.safetensors"), "optimizer": loaded("optimizer.bin"),
              "scheduler": loaded("scheduler.bin"), "counter": {"step": progress["step"]},
              "rng": {"data": progress["data"]}}
    for rank in range(int(sys.argv[1])):
        states = loaded(f"random_states_{rank}.pkl")
        streams = {"torch": states["torch_manual_seed"], "python": states["random_state"],
                   "numpy": states["numpy_random_seed"]}
        if "torch_cuda_manual_seed" in states:
            streams["cuda"] = states["torch_cuda_manual_seed"]
        yield rank, {"rng": streams}


torch.set_num_threads(1)  # on a busy machine more of them wait for each other
# The newest directory is what the training resumes from: each is announced by being there.
for folder in pathlib.Path(os.environ["SAVEGATE_DIR"]).glob("step_*"):
    savegate_hook.print_checkpoint(folder, folder.name[len("step_"):], lambda: parts(folder))
