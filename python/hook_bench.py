"""What the hook adds to a save of 1 GiB: saves with and without it, one after the other by turns.

    SAVEGATE_LIBRARY=…/libsavegate_worker.so python3 hook_bench.py [DIRECTORY] [--device cuda] [--rounds 9]

A save is torch.save of 64 tensors into DIRECTORY, fsync and rename, as many scripts do. Prints the
medians and their ratio, and apart from them what the calls of the hook themselves took.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time

import torch

import savegate_hook

TENSORS, BYTES = 64, 1 << 30


def save(state, path):
    with open(path + ".tmp", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".tmp", path)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("directory", nargs="?", default=".")
    arguments.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    arguments.add_argument("--rounds", type=int, default=9)
    chosen = arguments.parse_args()
    folder = tempfile.mkdtemp(prefix="hook-bench-", dir=chosen.directory)
    try:
        os.environ.update(SAVEGATE_EVENTS=folder + "/events.jsonl", SAVEGATE_DEVICE=chosen.device)
        hook = savegate_hook.Hook()
        state = {"model": {"layer.%d" % i: torch.randn(BYTES // TENSORS // 2, device=chosen.device)
                           .to(torch.bfloat16) for i in range(TENSORS)}}
        plain, hooked, inside = [], [], []
        for step in range(chosen.rounds + 1):
            began = time.monotonic()
            save(state, folder + "/plain.pt")
            plain.append(time.monotonic() - began)
            began = time.monotonic()
            with hook.saving(step, state, save=step + 1):
                entered = time.monotonic()
                save(state, folder + "/hooked.pt")
                left = time.monotonic()
            ended = time.monotonic()
            hooked.append(ended - began)
            inside.append(entered - began + ended - left)
        with open(folder + "/events.jsonl") as events:
            lines = events.read()
        if '"hook_error"' in lines or lines.count('"save_end"') != chosen.rounds + 1:
            raise SystemExit("the hook did not say what it was to say:\n" + lines[-2000:])
        without, with_it, calls = (statistics.median(times[1:]) for times in (plain, hooked, inside))
        print("device %s, %d rounds, 1 GiB in %d tensors" % (chosen.device, chosen.rounds, TENSORS))
        print("without %.3f s, with %.3f s, ratio %.3f; the calls took %.4f s, %.2f %% of a save"
              % (without, with_it, with_it / without, calls, 100 * calls / without))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
