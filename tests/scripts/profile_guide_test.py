"""Goal: the README's guide from a folder of profiler files to a sweep works word for word.

Its commands are taken out of the README and run in its order, in an empty folder in which the
paths that it names lie as they do in the checkout.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["RRFP_SOURCE_DIR"])
PROGRAM = pathlib.Path(os.environ["RRFP_PROGRAM"])
TITLE = "## From a folder of profiler files to a sweep"
COMMANDS = ["export", "import", "info", "fit", "sweep"]


def fail(what):
    sys.exit(f"failed: {what}")


text = (SOURCE / "README.md").read_text(encoding="utf-8")
if TITLE not in text:
    fail(f"the README has no \"{TITLE}\"")
section = text.split(TITLE, 1)[1].split("\n## ", 1)[0]
blocks = re.findall(r"^```\n(.*?)^```", section, re.S | re.M)
lines = [line for block in blocks for line in block.splitlines() if line.strip()]
if [shlex.split(line)[1] for line in lines] != COMMANDS:
    fail(f"expected the commands {COMMANDS}; found {lines}")

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "build" / "release").mkdir(parents=True)
    (folder / "build" / "release" / "rrfp").symlink_to(PROGRAM)
    (folder / "experiments").symlink_to(SOURCE / "experiments")
    outputs = {}
    for line in lines:
        ran = subprocess.run(shlex.split(line), cwd=folder, capture_output=True, text=True,
                             check=False)
        if ran.returncode != 0:
            fail(f"{line}: status {ran.returncode}: {ran.stderr}")
        outputs[shlex.split(line)[1]] = ran.stdout
    for command, words in (("import", "4 ranks, 4 stages, 12 microbatches, 2 replicas"),
                           ("import", "clocks: as the files state, which agrees"),
                           ("info", "1536 tasks, 1152 messages"),
                           ("sweep", "baseline")):
        if words not in outputs[command]:
            fail(f"{command} does not say \"{words}\": {outputs[command]}")
    if "dropped" in outputs["import"]:
        fail(f"import drops something: {outputs['import']}")
    if not (folder / "out" / "fitted" / "summary.json").is_file():
        fail("the sweep leaves no summary")
print("ok")
