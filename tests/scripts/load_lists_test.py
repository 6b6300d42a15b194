"""Goal: rrfp starts anywhere and at once. It is linked to neither CUDA, NCCL nor MPI; the CUDA module
loads where there is no driver; a machine without a GPU is told so in one line, not by a crash."""

import os
import pathlib
import re
import subprocess
import sys
import time

PROGRAM = pathlib.Path(os.environ["RRFP_PROGRAM"])
BUILD = PROGRAM.parent
MOST_START_MS = 20

# file: what no entry of its load list may match.
FORBIDDEN = {
    PROGRAM: r"lib(cuda|cudart|cublas|cublasLt|nccl|mpi|open-rte|open-pal)\b",
    # The stub of libcuda is on the library path of a toolkit, so a wrong link would succeed.
    BUILD / "librrfp_cuda.so": r"lib(cuda|cudart|mpi)\b",
    BUILD / "librrfp_cuda_double.so": r"lib(cuda|cudart|cublas|cublasLt|nccl|mpi)\b",
}


def needed(path):
    text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text)


def exported(path):
    text = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                          check=True).stdout
    return [line.split()[-1] for line in text.splitlines()]


def check_load_lists():
    faults = []
    for path, pattern in FORBIDDEN.items():
        if not path.exists():
            print(f"{path.name}: not built")
            continue
        names = needed(path)
        print(f"{path.name}: {' '.join(names)}")
        faults += [f"{path.name} needs {name}" for name in names if re.match(pattern, name)]
        if path != PROGRAM:
            # A module and its double define the same names, and may be open together.
            faults += [f"{path.name} exports {name}" for name in exported(path)
                       if re.match(r"cu[a-z]*[A-Z]|nccl", name)]
    return faults


def run(*arguments):
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("RRFP_CUDA")}
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=environment)


def check_devices():
    shown = run("devices")
    lines = [line for line in shown.stdout.splitlines() if line.startswith("cuda  ")]
    print(shown.stdout, end="")
    if shown.returncode != 0 or shown.stderr or not lines:
        return [f"rrfp devices: status {shown.returncode}, {shown.stderr!r}"]
    return [f"rrfp devices: {line!r} names no device and no reason" for line in lines
            if not re.match(r"cuda  (no CUDA device: .|device \d+: .)", line)]


def check_start():
    """The quickest of many, for the machine may be busy."""
    quickest_ms = 1e9
    for _ in range(20):
        begin = time.perf_counter()
        run("--version")
        quickest_ms = min(quickest_ms, (time.perf_counter() - begin) * 1000)
    print(f"rrfp --version: {quickest_ms:.1f} ms")
    sanitized = any(re.match(r"lib(a|t|ub)san\b", name) for name in needed(PROGRAM))
    if quickest_ms > MOST_START_MS and not sanitized:
        return [f"rrfp takes {quickest_ms:.1f} ms to start, more than {MOST_START_MS}"]
    return []


def main():
    faults = check_load_lists() + check_devices() + check_start()
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
