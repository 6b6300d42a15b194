"""Goal: every room includes only what the "may include" column of the architecture allows.

The rules are tried on planted violations first, so that a rule that has stopped biting fails too.
"""

import ast
import os
import pathlib
import re
import sys
import tempfile

ROOMS = ("scheduler_core", "traces", "sim", "executor", "experiments", "tests")

# For each room: the rooms whose headers it may include, and the libraries.
ALLOWED = {
    "scheduler_core": ({"scheduler_core"}, set()),
    "traces": ({"scheduler_core", "traces"}, {"system", "json", "boost", "sqlite", "zlib", "re2"}),
    "sim": ({"scheduler_core", "traces", "sim"}, {"system"}),
    "executor": (
        {"scheduler_core", "traces", "executor"},
        {"system", "boost", "eigen", "mpi", "cuda"},
    ),
    "experiments": (
        {"scheduler_core", "traces", "sim", "executor", "experiments"},
        {"system", "json", "boost", "sqlite", "eigen"},
    ),
    "tests": (
        set(ROOMS),
        {"system", "json", "boost", "sqlite", "zlib", "re2", "eigen", "mpi", "cuda", "test"},
    ),
}

# These two stand only in files named after them, so that everything builds without them.
ONLY_IN_FILES = {"mpi": "mpi_", "cuda": "cuda_"}

LIBRARIES = (
    ("std", r"[a-z_0-9]+"),  # No dot and no slash: <vector>, <cstdint>.
    ("json", r"nlohmann/.+"),
    ("boost", r"boost/.+"),
    ("sqlite", r"sqlite3\.h"),
    ("zlib", r"zlib\.h"),
    ("re2", r"re2/.+"),
    ("eigen", r"Eigen/.+"),
    ("mpi", r"mpi\.h"),
    ("cuda", r"(cuda|cublas|curand|nccl|nvtx|nvToolsExt|driver_types|cooperative_groups).*"
             r"|(cub|thrust|nvtx3|cuda)/.+"),
    ("test", r"(gtest|gmock|benchmark)/.+"),
    # Of the operating system.
    ("system", r"(sys|linux|arpa|net|netinet)/.+"
               r"|(unistd|fcntl|poll|pthread|sched|signal|dirent|dlfcn|netdb|termios|spawn|glob"
               r"|execinfo|immintrin|errno|time)\.h"),
)

INCLUDE = re.compile(r"^\s*#\s*(?:include|include_next|import)\b\s*(.*)$")

# What the plots may import besides each other and Python's own modules.
PLOT_LIBRARIES = {"matplotlib", "numpy", "mpl_toolkits"}
# Of Python's own: these could reach past the result files, into the program or a library.
PLOT_FORBIDDEN = {"subprocess", "ctypes"}


def library_of(name):
    for library, pattern in LIBRARIES:
        if re.fullmatch(pattern, name):
            return library
    return None


def without_comments(text):
    """The text with comments blanked and its lines kept. String literals are left alone."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        found = match.group(0)
        return found if found[0] in "\"'" else "\n" * found.count("\n")

    return pattern.sub(blank, text)


def fault_of(root, room, name, target):
    """Why the file `name` of `room` may not include `target` (with its brackets), or None."""
    rooms, libraries = ALLOWED[room]
    quoted = re.fullmatch(r'"([^"]+)"\s*', target)
    if quoted:
        path = quoted.group(1)
        first = path.split("/")[0]
        if first not in ROOMS or ".." in path.split("/"):
            return "is not written from the top level"
        if first not in rooms:
            return f"{room} may not include {first}"
        if not (root / path).is_file():
            return "does not exist"
        return None
    angled = re.fullmatch(r"<([^>]+)>\s*", target)
    if not angled:
        return "is neither <...> nor \"...\""
    library = library_of(angled.group(1))
    if library == "std":
        return None
    if library is None or library not in libraries:
        return f"{room} may not include {library or 'a library the project does not use'}"
    prefix = ONLY_IN_FILES.get(library)
    if prefix and not name.startswith(prefix):
        return f"{library} stands only in files named {prefix}*"
    return None


def check_sources(root):
    faults, seen = [], 0
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in (".h", ".cc", ".cu", ".cuh", ".in") or not path.is_file():
                continue
            if path.suffix == ".in" and not path.stem.endswith((".h", ".cc")):
                continue
            seen += 1
            text = without_comments(path.read_text(encoding="utf-8"))
            for number, line in enumerate(text.splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                fault = fault_of(root, room, path.name, match.group(1).strip())
                if fault:
                    where = path.relative_to(root)
                    faults.append(f"{where}:{number}: {match.group(1).strip()}: {fault}")
    return faults, seen


def check_plots(root):
    faults, seen = [], 0
    folder = root / "plots"
    own = {path.stem for path in folder.glob("*.py")} | {"plots"}
    for path in sorted(folder.rglob("*.py")):
        seen += 1
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module]
            else:
                continue
            for module in modules:
                first = module.split(".")[0]
                known = first in own or first in PLOT_LIBRARIES or first in sys.stdlib_module_names
                if not known or first in PLOT_FORBIDDEN:
                    where = path.relative_to(root)
                    faults.append(f"{where}:{node.lineno}: import {module}: plots read result "
                                  "files only, with Python's own modules, numpy and matplotlib")
    return faults, seen


def check(root):
    sources, source_count = check_sources(root)
    plots, plot_count = check_plots(root)
    return sources + plots, source_count + plot_count


# Each line is planted alone in the file: (file, line, is it allowed).
PLANTED = (
    ("scheduler_core/a.h", "#include <vector>", True),
    ("scheduler_core/a.h", '#include "scheduler_core/there.h"', True),
    ("scheduler_core/a.h", '#include "scheduler_core/gone.h"', False),
    ("scheduler_core/a.h", '#include "there.h"', False),
    ("scheduler_core/a.h", '#include "scheduler_core/../traces/there.h"', False),
    ("scheduler_core/a.h", '#include "traces/there.h"', False),
    ("scheduler_core/a.cc", "#include <unistd.h>", False),
    ("scheduler_core/a.cc", "#include <sys/mman.h>", False),
    ("scheduler_core/a.cc", "#include <boost/math/distributions.hpp>", False),
    ("scheduler_core/a.cc", "  #  include   <nlohmann/json.hpp>  // why", False),
    ("scheduler_core/a.cc", "#include MACRO", False),
    ("scheduler_core/a.cc", "// #include <unistd.h>", True),
    ("scheduler_core/a.cc", "/*\n#include <unistd.h>\n*/", True),
    ("scheduler_core/deep/a.cc", "#include <unistd.h>", False),
    ("traces/a.cc", "#include <nlohmann/json.hpp>", True),
    ("traces/a.cc", "#include <boost/iostreams/filter/zstd.hpp>", True),
    ("traces/a.cc", "#include <sqlite3.h>", True),
    ("traces/a.cc", "#include <sys/stat.h>", True),
    ("traces/a.cc", "#include <Eigen/Core>", False),
    ("traces/a.cc", '#include "sim/there.h"', False),
    ("traces/a.cc", "#include <gtest/gtest.h>", False),
    ("traces/a.cc", "#include <yaml-cpp/yaml.h>", False),
    ("sim/a.cc", '#include "traces/there.h"', True),
    ("sim/a.cc", "#include <nlohmann/json.hpp>", False),
    ("sim/a.cc", "#include <boost/program_options.hpp>", False),
    ("sim/a.cc", '#include "executor/there.h"', False),
    ("sim/a.cc", '#include "experiments/there.h"', False),
    ("executor/a.cc", "#include <Eigen/Core>", True),
    ("executor/a.cc", "#include <mpi.h>", False),
    ("executor/mpi_a.cc", "#include <mpi.h>", True),
    ("executor/mpi_a.cc", "#include <cuda_runtime.h>", False),
    ("executor/cuda_a.cu", "#include <cuda_runtime.h>", True),
    ("executor/cuda_a.cu", "#include <nccl.h>", True),
    ("executor/a.cc", "#include <nccl.h>", False),
    ("executor/a.cc", '#include "sim/there.h"', False),
    ("experiments/a.cc", "#include <boost/program_options.hpp>", True),
    ("experiments/a.cc", '#include "executor/there.h"', True),
    ("experiments/a.cc", "#include <mpi.h>", False),
    ("experiments/a.cc", "#include <cuda_runtime.h>", False),
    ("experiments/a.cc", '#include "tests/there.h"', False),
    ("tests/core/a.cc", "#include <gtest/gtest.h>", True),
    ("tests/core/a.cc", '#include "sim/there.h"', True),
    ("tests/core/a.cc", "#include <cuda_runtime.h>", False),
    ("tests/core/cuda_a.cc", "#include <cuda_runtime.h>", True),
    ("plots/a.py", "import json, numpy", True),
    ("plots/a.py", "from matplotlib import pyplot", True),
    ("plots/a.py", "import there", True),
    ("plots/a.py", "import pandas", False),
    ("plots/a.py", "def f():\n    import subprocess", False),
)


def self_test():
    """The planted lines that the rules judge wrongly."""
    wrong = []
    for name, line, allowed in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for room in ROOMS:
                (root / room).mkdir()
                (root / room / "there.h").write_text("")
            (root / "plots").mkdir()
            (root / "plots" / "there.py").write_text("")
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(line + "\n")
            faults, _ = check(root)
            if bool(faults) == allowed:
                wrong.append(f"{name}: {line}: {'refused' if allowed else 'let through'}")
    return wrong


def main():
    wrong = self_test()
    for line in wrong:
        print(f"the rules fail on a planted include: {line}")
    root = pathlib.Path(os.environ.get("RRFP_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
    faults, seen = check(root)
    for fault in faults:
        print(fault)
    print(f"{seen} files, {len(faults)} faults; {len(PLANTED)} planted lines, "
          f"{len(wrong)} judged wrongly")
    return 1 if wrong or faults or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
