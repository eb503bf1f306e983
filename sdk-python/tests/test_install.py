"""The package installs from its folder into an empty environment, and works and is typed there."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from harness import Daemon

PACKAGE = Path(__file__).resolve().parents[1]
PROGRAM = """
import heeler.sync
with heeler.sync.connect() as client:
    print(heeler.outcome(client.spawn("exit 3").wait()))
"""


def test_the_folder_installs_into_an_empty_environment(daemon: Daemon, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    # Without constraints: what a user gets today, newer than what the package is generated with.
    install: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        ".",
    ]
    subprocess.run(install, cwd=PACKAGE, check=True)
    environment = {"PATH": os.defpath, "HEELER_ADDR": daemon.address}
    ran = subprocess.run(
        [python, "-W", "error", "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert (ran.stdout, ran.stderr) == ("Exited(code=3)\n", "")


def test_the_wheel_has_the_package_and_its_types_and_nothing_else(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", tmp_path, PACKAGE], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"heeler/py.typed", "heeler/v1/__init__.py", "heeler/v1/task_pb2.pyi"} <= names
    assert all(name.startswith(("heeler/", "heeler-0")) for name in names)
