"""tools/setup.py where something is missing. That it brings everything is shown by make itself."""

import importlib.util
import json
import os

import pytest


@pytest.fixture
def setup(root, tmp_path, monkeypatch):
    """The module, with its .venv in an empty folder."""
    spec = importlib.util.spec_from_file_location("setup_tool", root / "tools" / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv" / "set-up.json")
    return module


def missing(setup, monkeypatch, *packages):
    monkeypatch.setattr(setup, "PACKAGES", [("build", package, lambda: False) for package in packages])


def test_this_machine_lacks_nothing(setup):
    assert setup.missing_packages(setup.LEVELS) == []


def test_without_root_one_line_names_everything_that_is_missing(setup, monkeypatch, capsys):
    missing(setup, monkeypatch, "cmake", "libxxhash-dev")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(setup, "apt", lambda *_: pytest.fail("apt-get must not be called"))
    with pytest.raises(SystemExit) as ended:
        setup.set_up_packages(setup.LEVELS)
    assert ended.value.code == 1
    line = "    apt-get install --no-install-recommends cmake libxxhash-dev\n"
    assert capsys.readouterr().err.count(line) == 1


def test_without_apt_the_packages_are_named(setup, monkeypatch, capsys):
    missing(setup, monkeypatch, "cmake")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SystemExit) as ended:
        setup.set_up_packages(setup.LEVELS)
    assert ended.value.code == 1 and "please install them: cmake" in capsys.readouterr().err


def test_lists_are_brought_up_to_date_only_if_installing_fails(setup, monkeypatch):
    missing(setup, monkeypatch, "cmake")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/usr/bin/{name}")
    asked = []

    def apt(action, *_):
        asked.append(action)
        if asked.count("install") == 2:
            monkeypatch.setattr(setup, "PACKAGES", [])
        return (0 if asked.count("install") == 2 else 100), "E: Unable to locate package cmake"

    monkeypatch.setattr(setup, "apt", apt)
    setup.set_up_packages(setup.LEVELS)
    assert asked == ["install", "update", "install"]


def test_what_apt_says_when_it_fails_is_shown(setup, monkeypatch, capsys):
    missing(setup, monkeypatch, "cmake")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(setup.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(setup, "apt", lambda *_: (100, "E: no space left"))
    with pytest.raises(SystemExit):
        setup.set_up_packages(setup.LEVELS)
    assert "E: no space left" in capsys.readouterr().err


def toolkit(folder):
    for name in ("lib64/libnvrtc.so.13", "include/cuda_fp16.h", "bin/ptxas"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


def test_a_toolkit_is_used_if_it_is_there(setup, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_HOME", str(toolkit(tmp_path / "cuda")))
    monkeypatch.delenv("INTARSIA_CUDA", raising=False)
    assert setup.find_toolkit() == tmp_path / "cuda"
    assert "requirements-cuda.txt" not in [path.name for path in setup.requirement_files(setup.LEVELS)]
    monkeypatch.setenv("INTARSIA_CUDA", "wheels")
    names = [path.name for path in setup.requirement_files(setup.LEVELS)]
    assert "requirements-cuda.txt" in names and "requirements-cuda-test.txt" in names
    assert "requirements-cuda-test.txt" not in [path.name for path in setup.requirement_files(("build", "run"))]


def test_half_a_toolkit_is_none(setup, monkeypatch, tmp_path):
    (toolkit(tmp_path / "cuda") / "include" / "cuda_fp16.h").unlink()
    monkeypatch.setattr(setup, "toolkit_candidates", lambda: [tmp_path / "cuda"])
    monkeypatch.delenv("INTARSIA_CUDA", raising=False)
    assert setup.find_toolkit() is None and setup.wants_cuda_wheels()


@pytest.mark.parametrize(("choice", "message"), [
    ("toolkit", "no CUDA toolkit with NVRTC was found; set CUDA_HOME"),
    ("both", "INTARSIA_CUDA is 'both'; it may be 'wheels' or 'toolkit'"),
])
def test_choices_that_can_not_be_met(setup, monkeypatch, capsys, choice, message):
    monkeypatch.setattr(setup, "toolkit_candidates", list)
    monkeypatch.setenv("INTARSIA_CUDA", choice)
    with pytest.raises(SystemExit):
        setup.wants_cuda_wheels()
    assert message in capsys.readouterr().err


def test_an_unsupported_python_is_refused(setup, monkeypatch, capsys):
    monkeypatch.setattr(setup, "PYTHON_RANGE", ((2, 0), (2, 7)))
    with pytest.raises(SystemExit):
        setup.make_venv()
    assert "is not supported: choose one from 2.0 to 2.7 with make PYTHON=" in capsys.readouterr().err


def test_a_virtual_environment_is_made_once_and_again_if_it_is_broken(setup, monkeypatch):
    """Without wheels: which are installed is decided by the hashes of the requirement files alone."""
    monkeypatch.setattr(setup, "requirement_files", lambda _: [])
    assert setup.read_stamp() is None
    setup.set_up_venv(setup.LEVELS)
    assert setup.read_stamp() == {}
    assert os.access(setup.VENV / "bin" / "intarsia", os.X_OK)
    assert setup.run([setup.VENV / "bin" / "python", "-c", "import intarsia"]) == (0, "")
    born = setup.STAMP.stat().st_mtime_ns
    setup.set_up_venv(setup.LEVELS)
    assert setup.STAMP.stat().st_mtime_ns == born
    (setup.VENV / "bin" / "python").unlink()
    assert setup.read_stamp() is None
    setup.set_up_venv(setup.LEVELS)
    assert setup.read_stamp() == {}


def test_a_changed_requirement_file_is_noticed(setup, monkeypatch, tmp_path):
    wheels = tmp_path / "requirements.txt"
    wheels.write_text("# nothing\n")
    monkeypatch.setattr(setup, "requirement_files", lambda _: [wheels])
    setup.set_up_venv(setup.LEVELS)
    before = json.loads(setup.STAMP.read_text())["files"]
    assert before == {"requirements.txt": setup.fingerprint(wheels)}
    wheels.write_text("# something else\n")
    setup.set_up_venv(setup.LEVELS)
    assert json.loads(setup.STAMP.read_text())["files"] != before


def test_a_wheel_that_can_not_be_had(setup, monkeypatch, tmp_path, capsys):
    wheels = tmp_path / "requirements.txt"
    wheels.write_text("./no-such-folder\n")
    monkeypatch.setattr(setup, "requirement_files", lambda _: [wheels])
    with pytest.raises(SystemExit):
        setup.set_up_venv(setup.LEVELS)
    assert "pip could not install them" in capsys.readouterr().err
    assert json.loads(setup.STAMP.read_text())["files"] == {}, "tried again the next time"
