"""A small training in PyTorch: what the subjects save, each in its way.

Every update depends on all of its state, the streams of random numbers included.
"""

import os
import pickle
import random

import numpy
import torch
import torch._dynamo  # the first update would import it
import torch.distributed as dist

WIDTH, BATCH, UPDATES_A_SAVE = 512, 8, 2


class Training:
    def __init__(self, parallel):
        """`parallel` wraps the layers: fully_shard, or DistributedDataParallel."""
        self.device = os.environ.get("SAVEGATE_DEVICE", "cpu")
        torch.set_num_threads(1)
        if self.device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("cpu:gloo,cuda:nccl" if self.device == "cuda" else "gloo")
        self.rank, self.world, self.step = dist.get_rank(), dist.get_world_size(), 0
        torch.manual_seed(1)  # the same weights on every rank
        self.layers = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Dropout(0.1),
                                          torch.nn.Linear(WIDTH, WIDTH)).to(self.device)
        self.model = parallel(self.layers)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.95)
        self.data = torch.Generator().manual_seed(self.rank)
        torch.manual_seed(100 + self.rank)
        random.seed(self.rank)
        numpy.random.seed(self.rank)

    @property
    def saves(self):
        """As many as the training has come to."""
        return self.step // UPDATES_A_SAVE

    def updates(self, hook):
        """Up to the next save."""
        for _ in range(UPDATES_A_SAVE):
            hook.update(self.step + 1, samples=self.update())

    def update(self):
        scale = random.random() + numpy.random.random()
        inputs = scale * torch.randn(BATCH, WIDTH, generator=self.data).to(self.device)
        (self.model(inputs) - inputs.flip(1)).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.scheduler.step()
        first = (self.step * self.world + self.rank) * BATCH
        self.step += 1
        return [(first, first + BATCH - 1)]

    def rng(self):
        streams = {"torch": torch.get_rng_state(), "data": self.data.get_state(),
                   "python": pickle.dumps(random.getstate()),
                   "numpy": pickle.dumps(numpy.random.get_state())}
        if self.device == "cuda":
            streams["cuda"] = torch.cuda.get_rng_state()
        return streams

    def set_rng(self, streams):
        torch.set_rng_state(streams["torch"])
        self.data.set_state(streams["data"])
        random.setstate(pickle.loads(streams["python"]))
        numpy.random.set_state(pickle.loads(streams["numpy"]))
        if self.device == "cuda":
            torch.cuda.set_rng_state(streams["cuda"])
