"""The tensors of a torch distributed checkpoint, from its `.metadata`: a line "dtype bytes tensors" a dtype.

    python3 torch_metadata.py CHECKPOINT/.metadata

The file is a pickle. Nothing that it names is imported or called: every class and function stands for its
name, so that neither PyTorch is needed nor any code of the file runs.
"""

import collections
import math
import pickle
import re
import sys


class Named:
    """An instance of any class, or what any function returned: its arguments and its state."""

    def __init__(self, *arguments):
        self.arguments, self.state = arguments, None

    def __setstate__(self, state):
        self.state = state


class Names(pickle.Unpickler):
    def find_class(self, module, name):
        if (module, name) == ("torch", "Size"):
            return tuple
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch":
            return name  # a dtype or a layout
        return type(name, (Named,), {})


def bytes_of(dtype):
    """Of one element: "bfloat16" is of 2, "float8_e4m3fn" of 1, "complex64" of 8."""
    bits = re.match(r"(?:b?float|u?int|complex)(\d+)", dtype)
    if dtype != "bool" and (bits is None or int(bits[1]) % 8 != 0):
        raise ValueError("the size of dtype %s is not known" % dtype)
    return 1 if bits is None else int(bits[1]) // 8


def sizes(metadata):
    """{dtype: [bytes, tensors]}; what is no tensor is pickled itself, and counts as it is in the files."""
    found = {}
    stored = collections.Counter()
    for index, place in (metadata.state.get("storage_data") or {}).items():
        stored[index.state["fqn"]] += place.state["length"]
    for name, item in metadata.state["state_dict_metadata"].items():
        if type(item).__name__ == "TensorStorageMetadata":
            dtype = item.state["properties"].state[0]
            size, tensors = math.prod(item.state["size"]) * bytes_of(dtype), 1
        else:
            dtype, size, tensors = "pickled", stored[name], 0
        total = found.setdefault(dtype, [0, 0])
        total[0] += size
        total[1] += tensors
    return found


def main(path):
    try:
        with open(path, "rb") as file:
            found = sizes(Names(file).load())
    except (OSError, ValueError, KeyError, IndexError, AttributeError, TypeError, EOFError,
            pickle.UnpicklingError) as error:
        print("%s: %s" % (type(error).__name__, error))
        sys.exit(1)
    for dtype, (size, tensors) in sorted(found.items()):
        print(dtype, size, tensors)


if __name__ == "__main__":
    main(sys.argv[1])
