#!/usr/bin/env python3
"""wheel.py WHEEL [PATH...] - a wheel runs where it says: Python 3.11 or newer, the architecture and glibc of its name (2.34
without one), in any folder.

Every ELF file is for that architecture, needs symbols of that glibc at most, no library but the C library's and weft's,
and looks for libraries beside itself only.  The wheel has the tool, the libraries, the plugins and the type stubs.  No
file has one of the PATHs in it, such as the folder that it was built in.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

MACHINES = {"x86_64": "X86-64", "aarch64": "AArch64"}  # as readelf names them
SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.\d+|ld-linux-.*\.so\.\d+|libweft(_file|_parallel)?\.so\.[\d.]+")
# The part of gloo-cpu that is opened only if the Gloo library is there.
NETWORK = re.compile(r"libgloo\.so\.\d+|libstdc\+\+\.so\.6|libgcc_s\.so\.1")
WANTED = ("_weft.abi3.so", "bin/weft", "lib/libweft.so.", "lib/libweft_file.so.", "lib/libweft_parallel.so.", "lib/libweft_feed.so.", "_weft.pyi",
          *(f"libweft_plugin_{name}.so" for name in ("gloo-cpu", "nccl", "nvshmem", "rccl")))  # fmt: skip


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def problems_of(path, name, glibc, machine):
    if MACHINES[machine] not in output("readelf", "-hW", path):
        yield f"{name} is not for {machine}"
    dynamic = output("readelf", "-dW", path)
    for version in re.findall(r"GLIBC_(\d+)\.(\d+)", output("objdump", "-T", path)):
        if tuple(map(int, version)) > glibc:
            yield f"{name} needs glibc {'.'.join(version)}"
            break
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not SYSTEM.fullmatch(library) and not (path.name == "libweft_gloo.so" and NETWORK.fullmatch(library)):
            yield f"{name} needs {library}"
    for place in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
        if any(not part.startswith("$ORIGIN") for part in place.split(":")):
            yield f"{name} looks for libraries in {place}"


wheel, paths = pathlib.Path(sys.argv[1]), [path.encode() for path in sys.argv[2:]]
problems = []
form = re.fullmatch(r"weft-[\d.]+-cp311-abi3-(?:linux|manylinux_(\d+)_(\d+))_(x86_64|aarch64)\.whl", wheel.name)
if not form:
    sys.exit(f"{wheel.name} is not the name of a wheel for Python 3.11 and newer on Linux")
glibc = (int(form[1]), int(form[2])) if form[1] else (2, 34)
with tempfile.TemporaryDirectory() as folder:
    archive = zipfile.ZipFile(wheel)
    archive.extractall(folder)
    names = archive.namelist()
    problems += [f"{name} is missing" for name in WANTED if not any(name in one for one in names)]
    binaries = 0
    for name in names:
        path = pathlib.Path(folder, name)
        if not path.is_file():
            continue
        content = path.read_bytes()
        problems += [f"{name} contains {text.decode()}" for text in paths if text in content]
        if content.startswith(b"\x7fELF"):
            binaries += 1
            problems += problems_of(path, name, glibc, form[3])
for problem in problems:
    print(f"{wheel.name}: {problem}")
print(f"{wheel.name}: {len(names)} files, {binaries} of machine code")
sys.exit(1 if problems else 0)
