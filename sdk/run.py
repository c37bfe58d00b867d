"""Runs the cases with the pinned packages, in an environment of their own below target/.

`python3 sdk/run.py COTTER [NAME…]`. The SDK is built from its source package: its wheels carry another agent.
"""

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / "target" / "sdk"
REQUIREMENTS = HERE / "requirements.txt"


def python():
    """The environment's interpreter; the environment is made anew when the packages have changed."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()
    mark = ENVIRONMENT / "made-of"
    interpreter = ENVIRONMENT / "bin" / "python"
    if not mark.exists() or mark.read_text() != digest:
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        install = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        lines = REQUIREMENTS.read_text().splitlines()
        # What the SDK is built with, so that its build fetches nothing that is not pinned.
        tools = [line.removeprefix("# build: ") for line in lines if line.startswith("# build: ")]
        subprocess.run([*install, *tools], check=True)
        build = ["--no-build-isolation", "--no-binary", "claude-agent-sdk"]
        subprocess.run([*install, *build, "--requirement", REQUIREMENTS], check=True)
        mark.write_text(digest)
    return interpreter


if __name__ == "__main__":
    sys.exit(subprocess.run([python(), HERE / "cases.py", *sys.argv[1:]], check=False).returncode)
