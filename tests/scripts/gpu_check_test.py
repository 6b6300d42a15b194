"""Goal: script/gpu-check, which is run where a GPU is at hand for minutes, works: every step of it is
run on the double of a device, with stand-ins for the tools that come with CUDA. Where there is no
device it says so and fails; a module that does not load is compiled anew; and it keeps to its time."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["RRFP_PROGRAM"]).parent
SCRIPTS = pathlib.Path(os.environ["RRFP_SOURCE_DIR"]) / "script"
DOUBLE = BUILD / "librrfp_cuda_double.so"

# As far as gpu-check and gpu-rebuild use them.
TOOLS = {
    "compute-sanitizer": 'shift 2\n"$@" && echo "========= ERROR SUMMARY: $ERRORS errors"\n',
    "nvidia-smi": "echo 1234\necho 2345\nexec sleep 60\n",
    "nvcc": """
for word; do
  if [ "$last" = -o ]; then out=$word; fi
  if [ "$word" = -shared ]; then link=1; fi
  last=$word
done
if [ "$link" ]; then cp "$MODULE" "$out"; else : >"$out"; fi
""",
}


def make_tools(folder):
    folder.mkdir()
    for name, text in TOOLS.items():
        (folder / name).write_text("#!/bin/sh\n" + text)
        (folder / name).chmod(0o755)
    return folder


def run(tools, out, *arguments, script=SCRIPTS / "gpu-check", **environment):
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "OUT": str(out),
                   "ERRORS": "0", "MODULE": str(DOUBLE), **environment}
    ended = subprocess.run([sys.executable, script, *arguments, "--quick"], capture_output=True,
                           text=True, env=environment)
    print(ended.stdout + ended.stderr)
    results = json.loads((out / "gpu-check.json").read_text())["results"]
    return ended, {result["check"]: result for result in results}


def wanted_checks():
    names = {"device", "partitions", "matrix products", "small model against the CPU's",
             "wide model against the CPU's", "NCCL", "every policy trains alike",
             "losses near a CPU's", "memory of the GPU", "dispatch", "link, rank 0 to 1",
             "link, rank 1 to 0", "memcheck, run", "memcheck, train"}
    policies = ("1f1b", "bf", "bfw", "zb-h2", "zb-h2 ready+wait")
    names |= {f"activations, {policy}" for policy in policies}
    for ranks in (4, 8):
        names |= {f"{what}, {ranks} ranks" for what in ("run", "decisions made again", *policies)}
    return names


def every_step(tools, out):
    ended, results = run(tools, out, BUILD, RRFP_CUDA_MODULE=str(DOUBLE))
    if ended.returncode != 0 or any(result["passed"] is False for result in results.values()):
        yield f"on the double: status {ended.returncode}"
    if set(results) != wanted_checks():
        yield f"on the double: {sorted(set(results) ^ wanted_checks())} are missing or new"
    if "double of a device" not in ended.stdout.splitlines()[-len(results)]:
        yield "the table does not begin with the device"
    if "2345 MiB" not in results.get("memory of the GPU", {"text": ""})["text"]:
        yield "the memory of the GPU is not what nvidia-smi says"
    if any(results[f"memcheck, {what}"]["passed"] is not True for what in ("run", "train")):
        yield "memcheck does not pass"


def errors_of_memory(tools, out):
    ended, results = run(tools, out, BUILD, "--only", "memcheck", ERRORS="3",
                         RRFP_CUDA_MODULE=str(DOUBLE))
    if ended.returncode != 1 or results["memcheck, run"]["passed"] is not False:
        yield f"three errors of memory: status {ended.returncode}, {results}"


def no_device(tools, out):
    ended, results = run(tools, out, BUILD, RRFP_CUDA_MODULE=str(BUILD / "no_such_module.so"))
    if ended.returncode != 1 or [one["passed"] for one in results.values()] != [False]:
        yield f"without a device: status {ended.returncode}, {results}"


def out_of_time(tools, out):
    ended, results = run(tools, out, BUILD, "--seconds", "2", RRFP_CUDA_MODULE=str(DOUBLE))
    last = list(results.values())[-1]
    if ended.returncode != 1 or last["passed"] or "the time is up" not in last["text"]:
        yield f"within two seconds: status {ended.returncode}, {results}"


def unknown_step(tools, out):
    ended = subprocess.run([sys.executable, SCRIPTS / "gpu-check", BUILD, "--only", "trainin"],
                           capture_output=True, text=True)
    if ended.returncode != 2 or "training" not in ended.stderr:
        yield f"a step that there is not: status {ended.returncode}, {ended.stderr}"


def compiled_there(tools, out):
    """A folder such as script/gpu-pack makes, whose module is of another machine."""
    pack = out / "pack"
    for source in ("executor/cuda_a.cc", "executor/cuda_b.cu", "scheduler_core/check.cc"):
        (pack / "source" / source).parent.mkdir(parents=True, exist_ok=True)
        (pack / "source" / source).write_text("")
    for script in ("gpu-check", "gpu-rebuild"):
        shutil.copy(SCRIPTS / script, pack)
    shutil.copy(BUILD / "rrfp", pack)
    (pack / "librrfp_cuda.so").write_text("of another machine")
    ended, results = run(tools, out, "--only", "run 4", script=pack / "gpu-check")
    if ended.returncode != 0 or not results.get("module compiled here", {"passed": 0})["passed"]:
        yield f"a module that does not load: status {ended.returncode}, {results}"
    if "double" not in results["device"]["text"]:
        yield "the module that was compiled is not the one that runs"


def main():
    if not DOUBLE.exists():
        print("skipped: built without the headers of CUDA")
        return 77
    os.environ.pop("RRFP_CUDA_MODULE", None)
    faults = []
    for part in (every_step, errors_of_memory, no_device, out_of_time, unknown_step,
                 compiled_there):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            faults += part(make_tools(folder / "tools"), folder)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
