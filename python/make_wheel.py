"""Packs savegate_hook.py and the libraries that it digests by into a wheel: make_wheel.py BUILD

    ./dev wheel
    pip install build/savegate_hook-*.whl
"""

import base64
import hashlib
import os
import platform
import re
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBRARIES = ("libsavegate_worker.so", "libsavegate_cuda.so")  # the second where there is nvcc

METADATA = """Metadata-Version: 2.1
Name: savegate-hook
Version: %s
Summary: What a training program says to savegate: events, marks and tensor digests.
Requires-Python: >=3.9
"""
WHEEL = """Wheel-Version: 1.0
Generator: savegate
Root-Is-Purelib: false
Tag: %s
"""


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt")) as file:
        return re.search(r"project\(savegate VERSION ([0-9.]+)", file.read()).group(1)


def contents(build):
    """Path in the wheel → bytes."""
    files = {}
    with open(os.path.join(ROOT, "python", "savegate_hook.py"), "rb") as file:
        files["savegate_hook.py"] = file.read()
    for name in LIBRARIES:
        path = os.path.join(build, "lib", name)
        if name == LIBRARIES[0] or os.path.exists(path):
            with open(path, "rb") as file:
                files["savegate_hook_library/" + name] = file.read()
    return files


def record_line(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return "%s,sha256=%s,%d\n" % (path, digest, len(data))


def make_wheel(build, folder):
    tag = "py3-none-linux_" + platform.machine()
    name = "savegate_hook-" + version()
    info = name + ".dist-info/"
    files = contents(build)
    files[info + "METADATA"] = (METADATA % version()).encode()
    files[info + "WHEEL"] = (WHEEL % tag).encode()
    record = "".join(record_line(path, data) for path, data in files.items())
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    wheel = os.path.join(folder, "%s-%s.whl" % (name, tag))
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path)  # no time of day: equal input, equal wheel
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return wheel


if __name__ == "__main__":
    print(make_wheel(sys.argv[1], sys.argv[1]))
