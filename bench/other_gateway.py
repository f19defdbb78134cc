"""A gateway to compare with, installed with pip in its own environment in `.bench/`, which git ignores. It is never a
dependency of the product."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from processes import REPO, BenchError


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherGateway:
    """`package` as pip installs it, perhaps with extras; `with_packages` are installed beside it."""

    name: str
    package: str
    tested: str
    with_packages: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return REPO / ".bench" / f"{self.name.lower()}-venv" / "bin"

    def version(self) -> str:
        """Return the installed version, or "" if the installation is missing or incomplete."""
        python = self.folder / "python"
        if not python.exists():
            return ""
        code = f"import importlib.metadata as m; print(m.version({self.package.partition('[')[0]!r}))"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def install(self) -> str:
        """Install it (minutes, up to 750 MB) and return the version: the tested one if the package index has it, else
        the newest. Raises BenchError if neither can be installed."""
        subprocess.run([sys.executable, "-m", "venv", str(self.folder.parent)], check=True)
        pip = [str(self.folder / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for package in (f"{self.package}=={self.tested}", self.package):
            if subprocess.run([*pip, package, *self.with_packages], check=False).returncode == 0:
                return self.version()
        raise BenchError(f"pip cannot install {self.name}; see its output above")

    def require(self) -> None:
        """Install it unless it is installed."""
        if not self.version():
            print(f"installing {self.name} for this benchmark (once) …", file=sys.stderr)
            self.install()
