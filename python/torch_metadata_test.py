import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import torch_metadata

try:
    import torch
    import torch.distributed.checkpoint as dcp
except ImportError:
    torch = None

PROGRAM = torch_metadata.__file__


class Executes:
    def __reduce__(self):
        return os.mkdir, (self.path,)


class TorchMetadataTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_tells_what_the_checkpoint_holds(self):
        state = {"a": torch.zeros(3, 5), "b": torch.zeros(7, dtype=torch.bfloat16), "n": [1, 2],
                 "c": torch.zeros(2, dtype=torch.float8_e4m3fn), "d": torch.zeros(4, dtype=torch.complex64),
                 "e": torch.zeros(6, dtype=torch.bool), "f": torch.zeros(0, 9)}
        dcp.save(state, checkpoint_id=self.folder, no_dist=True)
        told = subprocess.run([sys.executable, PROGRAM, self.folder + "/.metadata"], capture_output=True,
                              text=True, check=True).stdout.splitlines()
        self.assertEqual([line for line in told if not line.startswith("pickled ")],
                         ["bfloat16 14 1", "bool 6 1", "complex64 32 1", "float32 60 2", "float8_e4m3fn 2 1"])

    def test_runs_nothing_that_the_file_names(self):
        executes = Executes()
        executes.path = self.folder + "/made"
        with open(self.folder + "/.metadata", "wb") as file:
            pickle.dump(executes, file)
        ran = subprocess.run([sys.executable, PROGRAM, self.folder + "/.metadata"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 1)
        self.assertNotEqual(ran.stdout, "")
        self.assertFalse(os.path.exists(executes.path))

    def test_a_dtype_of_unknown_size_is_an_error(self):
        for dtype in ("float4_e2m1fn_x2", "quint8", "bits"):
            with self.assertRaises(ValueError):
                torch_metadata.bytes_of(dtype)

    def test_sizes_of_dtypes(self):
        sizes = {"float64": 8, "bfloat16": 2, "float8_e5m2": 1, "int8": 1, "uint16": 2, "complex128": 16, "bool": 1}
        self.assertEqual({dtype: torch_metadata.bytes_of(dtype) for dtype in sizes}, sizes)


if __name__ == "__main__":
    unittest.main()
