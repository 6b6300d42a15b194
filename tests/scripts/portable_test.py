"""Goal: what script/gpu-pack builds (RRFP_PORTABLE) needs nothing of the machine that it is taken to
but the C library. The program and the modules of this build are linked once more in that way, which
takes seconds, and the program is started with the double of a device."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["RRFP_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["RRFP_PROGRAM"]).parent
C_LIBRARY = re.compile(r"(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux-x86-64\.so\.2)$")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", path).stdout)


def cached(name):
    found = re.search(rf"^{name}:[A-Z]+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    return found.group(1) if found else ""


def link(configured, name, folder):
    """Of the objects of this build, as the portable one would be. Returns a fault or None."""
    command = run("ninja", "-C", configured, "-t", "commands", "-s", name).stdout.strip()
    command = command.splitlines()[-1].replace(f"-o {name} ", f"-o {folder / name} ")
    ended = run("bash", "-c", command, cwd=BUILD)
    if ended.returncode != 0:
        return f"{name} does not link: {ended.stdout[-2000:]}{ended.stderr[-2000:]}"
    names = needed(folder / name)
    print(f"{name}: {' '.join(names)}")
    foreign = [other for other in names if not C_LIBRARY.match(other)]
    return f"{name} needs {' '.join(foreign)}" if foreign else None


def main():
    if cached("RRFP_SANITIZE"):
        print("skipped: objects for sanitizers need the sanitizers' libraries")
        return 77
    if shutil.which("ninja") is None or not (BUILD / "build.ninja").exists():
        print("skipped: the link commands are read from a build by ninja")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        configured = folder / "configured"
        ended = run("cmake", "-S", SOURCE, "-B", configured, "-G", "Ninja",
                    "-DRRFP_PORTABLE=ON", "-DRRFP_TESTS=OFF", "-DRRFP_MPI=OFF",
                    *(f"-D{name}={cached(name)}" for name in
                      ("CMAKE_CXX_COMPILER", "CMAKE_BUILD_TYPE", "RRFP_CUDA")))
        if ended.returncode != 0:
            print(ended.stdout + ended.stderr)
            return 1
        names = ["rrfp"] + [name for name in ("librrfp_cuda.so", "librrfp_cuda_double.so")
                            if (BUILD / name).exists()]
        faults = [fault for name in names if (fault := link(configured, name, folder))]
        if not faults and "librrfp_cuda_double.so" in names:
            shutil.copy(folder / "librrfp_cuda_double.so", folder / "librrfp_cuda.so")
            case = SOURCE / "tests" / "cases" / "anticipating-zb.json"
            for wanted, arguments in (
                    ("double of a device", ["devices"]),
                    ("3 partitions", ["run", case, "--device", "synthetic"]),
                    ("3 partitions", ["train", case, "--device", "cuda", "--text",
                                      SOURCE / "README.md", "--steps", "2"])):
                ended = run(folder / "rrfp", *arguments)
                print(ended.stdout + ended.stderr)
                if ended.returncode != 0 or wanted not in ended.stdout + ended.stderr:
                    faults.append(f"rrfp {arguments[0]}: status {ended.returncode}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
