"""What all figures share: how they are written, and how an error is told."""

import os
import pathlib
import sys
import tempfile


def fail(message):
    sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {message}")


def save(figure, path):
    """Whole or not at all, and the same bytes for the same results."""
    folder = os.path.dirname(path) or "."
    try:
        handle, temporary = tempfile.mkstemp(suffix=".png", dir=folder)
    except OSError as error:
        fail(f"{path}: {error}")
    os.close(handle)
    try:
        figure.savefig(temporary, metadata={"Software": None})
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        fail(f"{path}: {error}")
