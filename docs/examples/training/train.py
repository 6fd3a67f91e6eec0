"""A training script as many are: every rank saves its own state, and goes on from the newest it finds."""

import os
import pathlib
import pickle
import random

RANK = int(os.environ.get("RANK", 0))
FOLDER = pathlib.Path("checkpoints")
STEPS, SAVE_EVERY = 40, 2


def update(state, streams):
    for i, weight in enumerate(state["model"]):
        gradient = weight - streams["data"].gauss(0, 1) * (streams["dropout"].random() < 0.9)
        state["optimizer"][i] = 0.9 * state["optimizer"][i] + gradient + streams["noise"].gauss(0, 0.1)
        state["model"][i] = weight - state["scheduler"] * state["optimizer"][i]
    state["scheduler"] *= 0.99
    state["step"] += 1


def save(state):
    path = FOLDER / f"step_{state['step']}-rank_{RANK}.pickle"
    with open(f"{path}.tmp", "wb") as file:
        pickle.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{path}.tmp", path)


def newest():
    saved = FOLDER.glob(f"step_*-rank_{RANK}.pickle")
    return max(saved, key=lambda path: int(path.name[5:].split("-")[0]), default=None)


def main():
    FOLDER.mkdir(exist_ok=True)
    streams = {name: random.Random(f"{name} {RANK}") for name in ("data", "dropout", "noise", "order")}
    state = {"model": [0.0] * 512, "optimizer": [0.0] * 512, "scheduler": 0.1, "step": 0, "rng": {}}
    path = newest()
    if path:
        state = pickle.loads(path.read_bytes())
        for name, stream in streams.items():
            stream.setstate(state["rng"][name])
    while state["step"] < STEPS:
        update(state, streams)
        if state["step"] % SAVE_EVERY == 0:
            state["rng"] = {name: stream.getstate() for name, stream in streams.items()}
            save(state)


main()
