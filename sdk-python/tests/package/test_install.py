"""The package installs into an empty environment and works there."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from harness.daemon import Daemon

PACKAGE = Path(__file__).resolve().parents[2]
PROGRAM = """
import heeler.sync
with heeler.sync.connect() as client:
    print(heeler.outcome(client.spawn("exit 3").wait()))
"""


def test_the_package_installs_and_runs(daemon: Daemon, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    # Without constraints: the newest dependencies, as a user gets them.
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


def test_the_wheel_has_only_the_package_and_its_types(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", tmp_path, PACKAGE], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    archive = zipfile.ZipFile(wheel)
    names = set(archive.namelist())
    assert {"heeler/py.typed", "heeler/v1/__init__.py", "heeler/v1/task_pb2.pyi"} <= names
    assert all(name.startswith(("heeler/", "heeler-0")) for name in names)
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        packed = archive.read(f"heeler-0.1.0.dist-info/licenses/{name}")
        assert packed == (PACKAGE.parent / name).read_bytes()
    metadata = archive.read("heeler-0.1.0.dist-info/METADATA").decode()
    assert "Project-URL: Homepage, https://heeler.dev" in metadata
