"""Goal: script/gpu-check, which is run where a GPU is at hand for minutes, works: every step of it is
run on the double of a device, and where there is no device it says so and fails."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["RRFP_PROGRAM"]).parent
SCRIPT = pathlib.Path(os.environ["RRFP_SOURCE_DIR"]) / "script" / "gpu-check"
DOUBLE = BUILD / "librrfp_cuda_double.so"


def run(module, out):
    environment = {**os.environ, "RRFP_CUDA_MODULE": str(module), "OUT": out}
    ended = subprocess.run([sys.executable, SCRIPT, BUILD, "--quick"], capture_output=True,
                           text=True, env=environment)
    print(ended.stdout + ended.stderr)
    return ended, json.loads((pathlib.Path(out) / "gpu-check.json").read_text())["results"]


def main():
    if not DOUBLE.exists():
        print("skipped: built without the headers of CUDA")
        return 77
    faults = []
    with tempfile.TemporaryDirectory() as out:
        ended, results = run(DOUBLE, out)
        names = {result["check"] for result in results}
        wanted = {"device", "dispatch", "memcheck", "every policy trains alike",
                  "losses near a CPU's"}
        for ranks in (4, 8):
            wanted |= {f"{what}, {ranks} ranks"
                       for what in ("run", "decisions made again", "1f1b", "bfw", "zb-h2",
                                    "zb-h2 ready+wait")}
        if ended.returncode != 0 or any(result["passed"] is False for result in results):
            faults.append(f"on the double: status {ended.returncode}")
        if names != wanted:
            faults.append(f"on the double: checks {sorted(names ^ wanted)} are missing or new")
        if "double of a device" not in ended.stdout.splitlines()[-len(results)]:
            faults.append("the table does not begin with the device")
        ended, results = run(BUILD / "no_such_module.so", out)
        if ended.returncode != 1 or [result["passed"] for result in results] != [False]:
            faults.append(f"without a device: status {ended.returncode}, {results}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
