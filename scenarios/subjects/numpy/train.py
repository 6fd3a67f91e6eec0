"""A training program in plain NumPy, one process a rank: no framework is needed to be tested.

    python train.py          trains under savegate
    python train.py --read   prints what a fresh process finds in each checkpoint
"""

import os
import pickle
import random
import sys

import checkpoint
import numpy as np
import savegate_hook

ROWS, COLUMNS, BATCH, UPDATES_A_SAVE = 64, 8192, 8, 2
STREAMS = ("noise", "dropout", "order")


def fresh_state(rank, world):
    """This rank's rows of one matrix, and its streams of random numbers."""
    shape = (ROWS // world, COLUMNS)
    streams = {name: np.random.default_rng([rank, n]) for n, name in enumerate(STREAMS)}
    return {"model": np.random.default_rng(rank).standard_normal(shape),
            "optimizer": np.zeros(shape), "scheduler": 0.1,
            "counter": {"step": 0, "sample": 0},
            "rng": {"python": random.Random(rank), **streams},
            "contract": {"data": os.environ.get("CORPUS", "a corpus"), "world": world}}


def update(state, rank, world):
    rng, counter = state["rng"], state["counter"]
    noise = rng["noise"].standard_normal(state["model"].shape) + rng["python"].random()
    kept = rng["dropout"].random(COLUMNS) < 0.9
    state["optimizer"] = 0.9 * state["optimizer"] + noise[:, rng["order"].permutation(COLUMNS)] * kept
    state["model"] = state["model"] - state["scheduler"] * state["optimizer"]
    state["scheduler"] *= 0.99
    first = counter["sample"] + rank * BATCH
    state["counter"] = {"step": counter["step"] + 1, "sample": counter["sample"] + world * BATCH}
    return [(first, first + BATCH - 1)]


def told(state, rank):
    """The state as items can be made of it: slices as slices, streams as bytes."""
    rows = len(state["model"])
    slices = {name: savegate_hook.Shard(state[name], (ROWS, COLUMNS), (rank * rows, 0))
              for name in ("model", "optimizer")}
    streams = {name: pickle.dumps(stream) for name, stream in state["rng"].items()}
    return {**state, **slices, "rng": streams}


def restore(hook, ranks):
    state, folder = fresh_state(ranks.rank, ranks.world), None
    contract = state["contract"]
    hook.load_begin()
    try:
        with ranks.together():
            folder = checkpoint.newest()
            if folder:
                state = checkpoint.load(folder, ranks.rank)
                for name, value in contract.items():
                    if state["contract"][name] != value:
                        raise ValueError(f"saved with {name} = {state['contract'][name]}, not {value}")
    except Exception as error:
        hook.resumed(None, path=folder, error=error)
        raise
    step = state["counter"]["step"]
    hook.resumed(step if folder else None, items=told(state, ranks.rank) if folder else None,
                 path=folder, save=step // UPDATES_A_SAVE)
    return state


def train():
    from ranks import Ranks
    hook, ranks = savegate_hook.Hook(), Ranks()
    state = restore(hook, ranks)
    save = state["counter"]["step"] // UPDATES_A_SAVE
    while not hook.until_reached(save):
        for _ in range(UPDATES_A_SAVE):
            samples = update(state, ranks.rank, ranks.world)
            hook.update(state["counter"]["step"], samples=samples)
        save += 1
        with hook.saving(state["counter"]["step"], told(state, ranks.rank), save=save):
            checkpoint.save(ranks, state["counter"]["step"], state)
    hook.done()


def read():
    announced = checkpoint.newest()
    for folder in checkpoint.ROOT.glob("step_*"):
        def ranks():
            for rank in range(checkpoint.world_of(folder)):
                yield rank, told(checkpoint.load(folder, rank), rank)
        savegate_hook.print_checkpoint(folder, folder.name[len("step_"):], ranks, folder == announced)


if __name__ == "__main__":
    read() if sys.argv[1:] == ["--read"] else train()
