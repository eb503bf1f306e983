"""Every Python program in the docs runs and prints the text below it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.daemon import DEADLINE, Daemon

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("README.md", "docs/sdk/python.md", "sdk-python/README.md")
PROGRAM = re.compile(r"^```python\n(.*?)^```\n+^```text\n(.*?)^```$", re.M | re.S)


def programs() -> list[tuple[str, str, str]]:
    """Returns page and heading, the program, and its output."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        matches = list(PROGRAM.finditer(text))
        assert len(matches) == text.count("```python\n"), f"{page}: a program without output"
        for match in matches:
            heading = re.findall(r"^#+ (.*)$", text[: match.start()], re.M)[-1]
            found.append((f"{page}: {heading}", match[1], match[2]))
    return found


def begin(daemon: Daemon, program: str) -> subprocess.Popen[str]:
    environment = os.environ | {"HEELER_ADDR": daemon.address}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.parametrize(
    ("program", "printed"), [pytest.param(*rest, id=name) for name, *rest in programs()]
)
def test_a_program_prints_the_output_on_the_page(
    daemon: Daemon, program: str, printed: str
) -> None:
    running = begin(daemon, program)
    assert running.stdout is not None
    first = ""
    if '"nightly"' in program:
        with daemon.connect() as client:
            client.spawn("exit 0", session="nightly", name="first")
            first = running.stdout.readline()
            daemon.restart()
            client.spawn("exit 3", session="nightly", name="last")
    output, errors = running.communicate(timeout=DEADLINE)
    assert errors == ""
    # The proof depends on the machine.
    assert (first + output).replace("NO_CHILDREN", "CGROUP_EMPTY") == printed


def test_the_programs_pass_the_type_checker(tmp_path: Path) -> None:
    for number, (_, program, _) in enumerate(programs()):
        (tmp_path / f"program_{number}.py").write_text(program)
    for example in ("session.py", "agents.py"):
        shutil.copy(ROOT / "examples/python" / example, tmp_path)
    check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    checked = subprocess.run(
        [*check, *map(str, tmp_path.glob("*.py"))], cwd=tmp_path, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_example_of_a_session_runs(daemon: Daemon) -> None:
    example = ROOT / "examples/python"
    running = begin(daemon, (example / "session.py").read_text())
    output, errors = running.communicate(timeout=DEADLINE)
    assert errors == ""
    shown = (example / "README.md").read_text().partition("```text\n")[2].partition("```")[0]
    # The two tasks that end by themselves may do so in either order.
    assert sorted(set(output.splitlines()) - counts(output)) == sorted(
        set(shown.splitlines()) - counts(shown)
    )
    lines = output.splitlines()
    assert lines[0] == "live: 0 agents, 1 shells"
    assert lines[-3:] == ["stuck CANCELLED silent", "live: 0 agents, 0 shells", "idle"]


def test_the_example_of_a_fleet_prints_the_output_on_its_page(daemon: Daemon) -> None:
    """C18, P7."""
    example = ROOT / "examples/python"
    running = begin(daemon, (example / "agents.py").read_text())
    output, errors = running.communicate(timeout=DEADLINE)
    assert errors == ""
    assert (
        output == (example / "README.md").read_text().rpartition("```text\n")[2].partition("```")[0]
    )


def counts(text: str) -> set[str]:
    return {line for line in text.splitlines() if line.startswith("live: ")}


def test_the_install_line_is_the_same_on_every_page() -> None:
    """The pages and the example name the package by its folder in a checkout."""
    for page in (*PAGES, "examples/python/README.md"):
        assert "pip install ./sdk-python" in (ROOT / page).read_text(), page


def test_the_page_has_its_six_recipes() -> None:
    headings = re.findall(r"^## (\d)\. ", (ROOT / "docs/sdk/python.md").read_text(), re.M)
    assert headings == ["1", "2", "3", "4", "5", "6"]
