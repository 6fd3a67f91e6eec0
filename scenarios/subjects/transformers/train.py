"""Hugging Face Transformers: a small model from its configuration, trained and saved by Trainer.

It resumes from get_last_checkpoint(), the directory with the highest number, as its users do.
"""

import contextlib
import os
import random

import numpy
import savegate_hook
import torch
import torch._dynamo  # the first update would import it
from task import model_of, samples_of
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint
from transformers.training_args import ParallelMode

savegate_hook.fork_point()

BATCH, UPDATES_A_SAVE, LAST, SEED = 4, 2, 64, 1
REPLICAS = dict.fromkeys(("model", "optimizer", "scheduler", "counter", "rng.data"), "replica")


class Watched(Trainer):
    """It says what it does to the hook."""

    def __init__(self, hook, **named):
        super().__init__(**named)
        self.hook, self.folder = hook, get_last_checkpoint(self.args.output_dir)
        self.add_callback(Events(self))

    def train_on(self):
        with contextlib.ExitStack() as self.restoring:
            self.loading = self.restoring.enter_context(self.hook.loading())
            self.loading.path = self.folder
            self.train(resume_from_checkpoint=self.folder)

    def first_step_begins(self):
        if self.folder:
            self.loading.restored(self.state.global_step, self.told(), save=self.saves)
        self.restoring.close()

    def training_step(self, model, inputs, *rest):
        self.samples = [(number, number) for number in inputs["input_ids"][:, 0].tolist()]
        return super().training_step(model, inputs, *rest)

    def _save_checkpoint(self, model, trial):
        with self.hook.saving(self.state.global_step, self.told(), save=self.saves):
            super()._save_checkpoint(model, trial)

    @property
    def saves(self):
        return self.state.global_step // UPDATES_A_SAVE

    def told(self):
        """What a checkpoint is to hold; the order of the samples follows from seed and epoch."""
        streams = {"torch": torch.get_rng_state(), "python": random.getstate(),
                   "numpy": numpy.random.get_state(), "data": [SEED, int(self.state.epoch)]}
        if torch.cuda.is_available():  # as Trainer does it
            of_all = self.args.parallel_mode == ParallelMode.DISTRIBUTED
            streams["cuda"] = torch.cuda.get_rng_state_all() if of_all else torch.cuda.get_rng_state()
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                "scheduler": self.lr_scheduler.state_dict(), "counter": {"step": self.state.global_step},
                "rng": streams}


class Events(TrainerCallback):
    def __init__(self, trainer):
        self.trainer, self.begun = trainer, False

    def on_step_begin(self, *unused, **named):
        if not self.begun:
            self.trainer.first_step_begins()
        self.begun = True

    def on_step_end(self, args, state, control, **named):
        self.trainer.hook.update(state.global_step, samples=self.trainer.samples)

    def on_save(self, args, state, control, **named):
        control.should_training_stop = self.trainer.hook.until_reached(self.trainer.saves)
        return control


def main():
    torch.set_num_threads(1)
    hook, folder = savegate_hook.Hook(scopes=REPLICAS), os.environ["SAVEGATE_DIR"]
    on_cpu = os.environ.get("SAVEGATE_DEVICE", "cpu") == "cpu"
    arguments = TrainingArguments(output_dir=folder, use_cpu=on_cpu, max_steps=LAST,
                                  ddp_backend="gloo" if on_cpu else "nccl",
                                  per_device_train_batch_size=BATCH, save_steps=UPDATES_A_SAVE, seed=SEED,
                                  train_sampling_strategy="sequential", dataloader_pin_memory=False,
                                  logging_strategy="no", report_to=[], disable_tqdm=True)
    count = LAST * BATCH * arguments.world_size
    Watched(hook, model=model_of(count), args=arguments, train_dataset=samples_of(count)).train_on()
    hook.done()


main()
