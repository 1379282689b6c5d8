#!/usr/bin/env python3
"""Brings a machine to where Intarsia builds, runs or is tested, and does nothing where that is done already.

    tools/setup.py build     what the C part needs: a compiler, CMake, three C libraries
    tools/setup.py run       and .venv with Triton, NumPy and, unless a CUDA toolkit is found, NVRTC with its headers
    tools/setup.py test      and clang, its tools, pytest, ruff, mypy

Debian packages are found missing by looking for what they bring, never by asking the package manager, so that a tool
from elsewhere counts too. As root they are installed; otherwise one `apt-get` line names them and the exit status is 1.
What lies in .venv is decided by the contents of the requirement files: their hash is kept in .venv/set-up.json.

INTARSIA_CUDA=wheels takes NVRTC from PyPI although the machine has a toolkit; INTARSIA_CUDA=toolkit insists on one.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
VENV = ROOT / ".venv"
STAMP = VENV / "set-up.json"
LEVELS = ("build", "run", "test")
PYTHON_RANGE = ((3, 11), (3, 14))
CMAKE_LEAST = (3, 23)


def say(text: str) -> None:
    print(f"set-up: {text}", flush=True)


def fail(text: str) -> NoReturn:
    print(f"set-up: {text}", file=sys.stderr)
    sys.exit(1)


def run(command: Sequence[str | Path], **options: Any) -> tuple[int, str]:
    """The command's exit status and all it said."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              check=False, **options)
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout.decode(errors="replace")


# -- Debian packages ---------------------------------------------------------------------------------------------------


def has_program(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def has_library(name: str) -> Callable[[], bool]:
    return lambda: shutil.which("pkg-config") is not None and run(["pkg-config", "--exists", name])[0] == 0


def has_cmake() -> bool:
    if shutil.which("cmake") is None:
        return False
    words = run(["cmake", "--version"])[1].split()
    return tuple(int(part) for part in words[2].split(".")[:2]) >= CMAKE_LEAST


def has_venv() -> bool:
    return run([sys.executable, "-c", "import ensurepip, venv"])[0] == 0


def has_sanitizers_of_clang() -> bool:
    if shutil.which("clang") is None:
        return False
    name = f"libclang_rt.asan-{os.uname().machine}.a"
    return os.path.isabs(run(["clang", f"-print-file-name={name}"])[1].strip()) or has_clang_asan_by_directory()


def has_clang_asan_by_directory() -> bool:
    """Newer clangs keep one directory per target and drop the machine from the file's name."""
    directory = run(["clang", "-print-runtime-dir"])[1].strip()
    return any(Path(directory).glob("libclang_rt.asan*.a"))


# (level that needs it, Debian package, is it there?)
PACKAGES = (
    ("build", "gcc", has_program("gcc")),
    ("build", "libc6-dev", lambda: any(Path("/usr").glob("include/**/bits/libc-header-start.h"))),
    ("build", "make", has_program("make")),
    ("build", "cmake", has_cmake),
    ("build", "pkg-config", has_program("pkg-config")),
    ("build", "libxxhash-dev", has_library("libxxhash")),
    ("build", "libcjson-dev", has_library("libcjson")),
    ("build", "libcmocka-dev", has_library("cmocka")),
    ("run", "python3-venv", has_venv),
    ("run", "g++", has_program("g++")),
    ("test", "clang", has_program("clang")),
    ("test", "libclang-rt-14-dev", has_sanitizers_of_clang),
    ("test", "clang-format", has_program("clang-format")),
    ("test", "clang-tidy", has_program("clang-tidy")),
    ("test", "binutils", has_program("nm")),
    ("test", "groff-base", has_program("groff")),
)


def missing_packages(levels: Sequence[str]) -> list[str]:
    return [package for level, package, present in PACKAGES if level in levels and not present()]


def apt(*arguments: str) -> tuple[int, str]:
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C")
    return run(["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", *arguments], env=environment)


def install_packages(packages: list[str]) -> None:
    line = f"apt-get install --no-install-recommends {' '.join(packages)}"
    if shutil.which("apt-get") is None:
        fail(f"these are missing (by the names of their Debian packages), please install them: {' '.join(packages)}")
    if os.geteuid() != 0:
        fail(f"something is missing; please run this as root, then try again:\n\n    {line}\n")
    say(line)
    install = ("install", "-y", "--no-install-recommends", *packages)
    status, output = apt(*install)
    if status != 0:  # often only because the lists of a fresh machine are empty or old
        apt("update")
        status, output = apt(*install)
    if status != 0:
        fail(f"apt-get could not install them:\n{output}")


def set_up_packages(levels: Sequence[str]) -> None:
    missing = missing_packages(levels)
    if not missing:
        return
    install_packages(missing)
    still = missing_packages(levels)
    if still:
        fail(f"installed, and yet not found afterwards: {' '.join(still)}; is there another version first in PATH?")


# -- the virtual environment -------------------------------------------------------------------------------------------


def toolkit_candidates() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    nvcc = shutil.which("nvcc")
    if nvcc:
        yield Path(nvcc).resolve().parent.parent
    yield Path("/usr/local/cuda")


def find_toolkit() -> Path | None:
    """A CUDA toolkit that has NVRTC, the headers device code includes, and ptxas; or None."""
    for home in toolkit_candidates():
        libraries = [path for folder in ("lib64", "lib") for path in (home / folder).glob("libnvrtc.so*")]
        if libraries and (home / "include" / "cuda_fp16.h").exists() and (home / "bin" / "ptxas").exists():
            return home
    return None


def wants_cuda_wheels() -> bool:
    choice = os.environ.get("INTARSIA_CUDA", "")
    if choice not in ("", "wheels", "toolkit"):
        fail(f"INTARSIA_CUDA is '{choice}'; it may be 'wheels' or 'toolkit'")
    toolkit = find_toolkit()
    if choice == "toolkit" and toolkit is None:
        fail("INTARSIA_CUDA=toolkit, but no CUDA toolkit with NVRTC was found; set CUDA_HOME to its folder")
    return choice == "wheels" or toolkit is None


def requirement_files(levels: Sequence[str]) -> list[Path]:
    names = ["requirements.txt"]
    cuda, test = wants_cuda_wheels(), "test" in levels
    names += ["requirements-cuda.txt"] if cuda else []
    names += ["requirements-test.txt"] if test else []
    names += ["requirements-cuda-test.txt"] if cuda and test else []
    return [TOOLS / name for name in names]


def fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_stamp() -> dict[str, str] | None:
    """What .venv holds, as file name -> hash; None if there is no working .venv of this interpreter."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return None
    works = stamp.get("python") == sys.version and run([VENV / "bin" / "python", "-c", ""])[0] == 0
    return dict(stamp.get("files", {})) if works else None


def write_stamp(files: dict[str, str]) -> None:
    aside = STAMP.with_suffix(".new")
    aside.write_text(json.dumps({"python": sys.version, "files": files}, indent=2) + "\n")
    aside.replace(STAMP)


def make_venv() -> None:
    if not PYTHON_RANGE[0] <= sys.version_info[:2] <= PYTHON_RANGE[1]:
        least, most = (".".join(map(str, version)) for version in PYTHON_RANGE)
        here = sys.version.split()[0]
        fail(f"python {here} is not supported: choose one from {least} to {most} with make PYTHON=...")
    say(f".venv with python {sys.version.split()[0]}")
    if VENV.exists():
        shutil.rmtree(VENV)
    status, output = run([sys.executable, "-m", "venv", VENV])
    if status != 0:
        fail(f"python3 -m venv failed:\n{output}")
    site = next((VENV / "lib").glob("python3*/site-packages"))
    (site / "intarsia-checkout.pth").write_text(f"{ROOT / 'python'}\n")
    program = VENV / "bin" / "intarsia"
    program.write_text('#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/python" -m intarsia "$@"\n')
    program.chmod(0o755)
    write_stamp({})


def set_up_venv(levels: Sequence[str]) -> None:
    files = requirement_files(levels)
    wanted = {path.name: fingerprint(path) for path in files}
    there = read_stamp()
    if there is None:
        make_venv()
        there = {}
    if all(there.get(name) == value for name, value in wanted.items()):
        return
    say(f"installing the wheels of {', '.join(wanted)} (up to 300 MB the first time)")
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    command = [*pip, "install", "--no-deps"]  # nothing comes in that is not pinned
    for path in files:
        command += ["-r", str(path)]
    status, output = run(command)
    if status != 0:
        fail(f"pip could not install them:\n{output}")
    status, output = run([*pip, "check"])
    if status != 0:
        fail(f"the pinned versions don't fit each other:\n{output}")
    write_stamp({**there, **wanted})


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] not in LEVELS:
        fail(f"usage: tools/setup.py {'|'.join(LEVELS)}")
    levels = LEVELS[: LEVELS.index(sys.argv[1]) + 1]
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / ".set-up.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two `make` at once take turns
        set_up_packages(levels)
        if "run" in levels:
            set_up_venv(levels)


if __name__ == "__main__":
    main()
