"""PyTorch, data parallel, saved as safetensors files (files.py): a part a rank, and an index.

    train.py          trains under savegate
    train.py --read   prints what a fresh process finds in each checkpoint
"""

import sys

import files
import savegate_hook
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel
from training import Training

savegate_hook.fork_point()

FLAT = StateDictOptions(flatten_optimizer_state_dict=True)
REPLICAS = dict.fromkeys(("model", "optimizer", "scheduler", "counter"), "replica")


def state_of(training):
    """Tensors and numbers by their dotted names."""
    model, optimizer = get_state_dict(training.model, training.optimizer, options=FLAT)
    rng = {f"{training.rank}.{name}": torch.frombuffer(bytearray(stream), dtype=torch.uint8)
           if isinstance(stream, bytes) else stream for name, stream in training.rng().items()}
    parts = {"model": model, "optimizer": optimizer, "scheduler": training.scheduler.state_dict(),
             "rng": rng, "counter": {"step": training.step}}
    return {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}


def restore(training, state):
    def part(name):
        return {key[len(name) + 1:]: value for key, value in state.items() if key.startswith(name + ".")}

    set_state_dict(training.model, training.optimizer, model_state_dict=part("model"),
                   optim_state_dict=part("optimizer"), options=FLAT)
    training.scheduler.load_state_dict(part("scheduler"))
    training.step = state["counter.step"]
    training.set_rng({name: stream.numpy().tobytes() if name in ("python", "numpy") else stream
                      for name, stream in part(f"rng.{training.rank}").items()})


def train():
    hook = savegate_hook.Hook(scopes=REPLICAS)
    training = Training(DistributedDataParallel)
    with hook.loading() as loading:
        loading.path = files.complete()[-1] if files.complete() else None
        if loading.path:
            restore(training, {name: value for part in files.load(loading.path) for name, value in part.items()})
            loading.restored(training.step, state_of(training), save=training.saves)
    while not hook.until_reached(training.saves):
        training.updates(hook)
        state = state_of(training)
        with hook.saving(training.step, state, save=training.saves):
            files.save(training.step, state, training.rank, training.world)
    hook.done()
    dist.destroy_process_group()


def read():
    for folder in files.complete():
        savegate_hook.print_checkpoint(folder, files.step_of(folder), lambda: enumerate(files.load(folder)))


read() if sys.argv[1:] == ["--read"] else train()
