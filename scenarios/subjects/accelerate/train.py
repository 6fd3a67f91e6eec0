"""Hugging Face Accelerate: save_state into a directory a step, load_state of the newest one.

The newest directory is taken as it is, as the examples of the library do: it has no marker of its own.
"""

import os
import pathlib
import random

import numpy
import savegate_hook
import torch
import torch._dynamo  # the first update would import it
from accelerate import Accelerator

savegate_hook.fork_point()

ROOT = pathlib.Path(os.environ["SAVEGATE_DIR"])
WIDTH, BATCH, UPDATES_A_SAVE = 512, 8, 2
REPLICAS = dict.fromkeys(("model", "optimizer", "scheduler", "counter", "rng.data"), "replica")


class Progress:
    """Registered with Accelerate, which saves it once for all ranks."""

    def __init__(self):
        self.step, self.data = 0, torch.Generator().manual_seed(1)

    def state_dict(self):
        return {"step": self.step, "data": self.data.get_state()}

    def load_state_dict(self, state):
        self.step = state["step"]
        self.data.set_state(state["data"])


class Training:
    def __init__(self):
        torch.set_num_threads(1)
        self.accelerator = Accelerator(cpu=os.environ.get("SAVEGATE_DEVICE", "cpu") == "cpu")
        torch.manual_seed(1)  # the same weights on every rank
        layers = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Dropout(0.1),
                                     torch.nn.Linear(WIDTH, WIDTH))
        optimizer = torch.optim.AdamW(layers.parameters(), lr=0.01)
        self.model, self.optimizer, self.scheduler = self.accelerator.prepare(
            layers, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.95))
        self.progress = Progress()
        self.accelerator.register_for_checkpointing(self.progress)
        self.rank, self.world = self.accelerator.process_index, self.accelerator.num_processes
        for seed in (torch.manual_seed, random.seed, numpy.random.seed):
            seed(100 + self.rank)

    @property
    def saves(self):
        return self.progress.step // UPDATES_A_SAVE

    def update(self):
        scale = random.random() + numpy.random.random()
        batches = torch.randn(self.world, BATCH, WIDTH, generator=self.progress.data)
        inputs = scale * batches[self.rank].to(self.accelerator.device)
        self.accelerator.backward((self.model(inputs) - inputs.flip(1)).square().mean())
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.scheduler.step()
        first = (self.progress.step * self.world + self.rank) * BATCH
        self.progress.step += 1
        return [(first, first + BATCH - 1)]

    def state(self):
        """What save_state() saves; the random states of every GPU that is there."""
        streams = {"torch": torch.get_rng_state(), "data": self.progress.data.get_state(),
                   "python": random.getstate(), "numpy": numpy.random.get_state()}
        if torch.cuda.is_available():
            streams["cuda"] = torch.cuda.get_rng_state_all()
        return {"model": self.accelerator.unwrap_model(self.model).state_dict(),
                "optimizer": self.optimizer.state_dict(), "scheduler": self.scheduler.state_dict(),
                "counter": {"step": self.progress.step}, "rng": streams}


def main():
    hook, training = savegate_hook.Hook(scopes=REPLICAS), Training()
    with hook.loading() as loading:
        loading.path = max(ROOT.glob("step_*"), key=lambda path: int(path.name[5:]), default=None)
        if loading.path:
            training.accelerator.load_state(loading.path)
            loading.restored(training.progress.step, training.state(), save=training.saves)
    while not hook.until_reached(training.saves):
        for _ in range(UPDATES_A_SAVE):
            samples = training.update()
            hook.update(training.progress.step, samples=samples)
        with hook.saving(training.progress.step, training.state(), save=training.saves):
            training.accelerator.save_state(ROOT / f"step_{training.progress.step}")
    hook.done()
    training.accelerator.end_training()


main()
