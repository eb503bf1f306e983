"""The generated folder matches the proto."""

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in files
        if "__pycache__" not in file.parts
    }


def test_the_generated_folder_is_up_to_date(tmp_path: Path) -> None:
    subprocess.run([sys.executable, PACKAGE / "generate", tmp_path / "v1"], check=True)
    fresh, kept = contents(tmp_path / "v1"), contents(PACKAGE / "src/heeler/v1")
    stale = sorted(name for name in fresh.keys() | kept if fresh.get(name) != kept.get(name))
    assert not stale, "run sdk-python/generate"
