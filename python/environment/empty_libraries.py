"""Puts a library whose every function ends the process in place of each CUDA library that is missing.

    python empty_libraries.py .../site-packages/torch/lib

The loader wants a file of each name, with the versions and symbols that are asked of it.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

OF_CUDA = re.compile(r"lib(cu|nccl|nv)")


def readelf(option, library):
    return subprocess.run(["readelf", "--wide", option, library], capture_output=True, text=True, check=True).stdout


def asked_of(library):
    """(file, version) and the symbols asked of it; every file that is needed; symbols asked of any file."""
    files = {}  # version -> file
    file = ""
    for line in readelf("--version-info", library).splitlines():
        if found := re.search(r"File: (\S+)", line):
            file = found[1]
        elif found := re.search(r"Name: (\S+)\s+Flags", line):
            files[found[1]] = file
    symbols = collections.defaultdict(set)
    for found in re.finditer(r"UND (\w+)@([\w.]+)", readelf("--dyn-syms", library)):
        symbols[files.get(found[2], ""), found[2]].add(found[1])
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", library))
    without_version = set(re.findall(r"UND ((?:cu|nccl|nv)\w+)$", readelf("--dyn-syms", library), re.MULTILINE))
    return symbols, needed, without_version


def build(path, versions):
    with tempfile.TemporaryDirectory() as folder:
        names = sorted(set().union(*versions.values()))
        source = "".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in names)
        script = "".join(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n" for version, names in versions.items())
        pathlib.Path(folder, "versions").write_text(script)
        command = ["gcc", "-w", "-fno-builtin", "-fPIC", "-shared", "-x", "c", "-", "-o", str(path), f"-Wl,-soname,{path.name}"]
        if "" not in versions:
            command.append(f"-Wl,--version-script={folder}/versions")
        subprocess.run(command, input=source, text=True, check=True)


def main():
    libraries = pathlib.Path(sys.argv[1])
    missing = collections.defaultdict(dict)
    for library in libraries.glob("lib*.so"):
        symbols, needed, without_version = asked_of(library)
        for (file, version), names in symbols.items():
            if OF_CUDA.match(file):
                missing[file].setdefault(version, set()).update(names)
        for file in filter(OF_CUDA.match, needed):
            if file not in {of for of, _ in symbols}:
                missing[file].setdefault("", set()).update(without_version)
    for file, versions in missing.items():
        if not (libraries / file).exists():
            build(libraries / file, versions)


main()
