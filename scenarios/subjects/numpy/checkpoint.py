"""The save path: a directory a step, a shard a rank, a marker with every shard's digest, a pointer.

Every rank publishes its shard; when all have told each other that they did, rank 0 publishes the
marker, then the pointer. A rank that fails tells the others why, and all leave with that error.
"""

import hashlib
import json
import os
import pathlib
import pickle

ROOT = pathlib.Path(os.environ["SAVEGATE_DIR"])


def save(ranks, step, state):
    folder = ROOT / f"step_{step}"
    shard = pickle.dumps(state)
    with ranks.together():
        if ranks.rank == 0:  # what an earlier attempt left is no checkpoint any more
            folder.mkdir(exist_ok=True)
            sync(ROOT)
            (folder / "marker.json").unlink(missing_ok=True)
            sync(folder)
    with ranks.together():
        publish(shard_of(folder, ranks.rank), shard)
    digests = ranks.gather(hashlib.sha256(shard).hexdigest())
    with ranks.together():
        if ranks.rank == 0:
            publish(folder / "marker.json", json.dumps({"step": step, "shards": digests}).encode())
            publish(ROOT / "latest", folder.name.encode())


def newest():
    """The checkpoint that the pointer names; None where nothing was ever saved."""
    if (ROOT / "latest").exists():
        return ROOT / (ROOT / "latest").read_text()
    if any(ROOT.glob("step_*/marker.json")):
        raise FileNotFoundError(f"there are checkpoints, and no pointer: {ROOT / 'latest'}")
    return None


def load(folder, rank):
    """The rank's state; an error where a file is missing or is not what the marker says."""
    shards = json.loads((folder / "marker.json").read_bytes())["shards"]
    shard = shard_of(folder, rank).read_bytes()
    if hashlib.sha256(shard).hexdigest() != shards[rank]:
        raise ValueError(f"{shard_of(folder, rank)} is not what was saved")
    return pickle.loads(shard)


def world_of(folder):
    return len(json.loads((folder / "marker.json").read_bytes())["shards"])


def shard_of(folder, rank):
    return folder / f"shard-{rank}.pickle"


def publish(path, data):
    """The file has its name and all its bytes, durably; or an OSError says what failed where."""
    temporary = path.with_name(path.name + ".tmp")
    file, done = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 0
    try:
        try:
            while done < len(data):
                done += os.write(file, data[done:])
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        error.filename, error.offset, error.requested = str(temporary), done, len(data) - done
        raise
    os.rename(temporary, path)
    sync(path.parent)


def sync(directory):
    file = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        error.filename = str(directory)
        raise
    finally:
        os.close(file)
