"""Which modules of unfog some code imports, and from which files: asked of a new process."""

import json
import subprocess
import sys
from pathlib import Path

SAY = """
import ast, json, sys
from pathlib import Path

found = {n: m.__file__ for n, m in sys.modules.items() if n.partition(".")[0] == "unfog" and m.__file__}
computes = {n: f for n, f in found.items() if len(ast.parse(Path(f).read_text("utf-8")).body) > 1}
print(json.dumps(computes))
"""


def imported(code: str) -> dict[str, Path]:
    """The modules that this code imports, with their files; not those that hold a docstring alone."""
    done = subprocess.run([sys.executable, "-c", code + SAY], capture_output=True, text=True, check=True)
    return {name: Path(file) for name, file in json.loads(done.stdout).items()}
