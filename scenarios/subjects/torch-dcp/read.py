"""What a fresh process finds in each checkpoint of torch.distributed.checkpoint, slice by slice."""

import re

import checkpoints
import savegate_hook
import torch
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

savegate_hook.fork_point()


def slices(folder):
    """Each value, or slice of a tensor, with the rank into whose file it was written."""
    metadata, whole = FileSystemReader(folder).read_metadata(), {}
    _load_state_dict(whole, storage_reader=FileSystemReader(folder),
                     planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    values, _ = flatten_state_dict(whole)
    for index, stored in metadata.storage_data.items():
        rank, value = int(re.match(r"__(\d+)_", stored.relative_path)[1]), values[index.fqn]
        for chunk in getattr(metadata.state_dict_metadata[index.fqn], "chunks", []):
            if chunk.offsets == index.offset:
                place = tuple(slice(at, at + size) for at, size in zip(chunk.offsets, chunk.sizes))
                value = savegate_hook.Shard(value[place], value.shape, chunk.offsets)
        yield rank, {index.fqn: value}


torch.set_num_threads(1)  # on a busy machine more of them wait for each other
for folder in checkpoints.complete():
    savegate_hook.print_checkpoint(folder, checkpoints.step_of(folder), lambda: slices(folder))
