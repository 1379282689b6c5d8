"""What all commands share: help, options, suggestions, files in and out."""

import os
import re
import stat
import subprocess

import pytest

COMMANDS = ["run", "cc", "link", "sim", "inspect", "check", "fmt", "cache", "doctor", "help"]

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry nothing() { ret; }
"""


# -- help ------------------------------------------------------------------------------------------------------------


def test_without_a_command_the_overview_is_printed(intarsia):
    done = intarsia()
    assert done.code == 2
    assert all(re.search(rf"^  {command} ", done.out, re.M) for command in COMMANDS)
    assert done.out == intarsia("help").out == intarsia("--help").out == intarsia("-h").out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(intarsia, command):
    done = intarsia("help", command)
    assert done.code == 0 and done.err == ""
    assert f"usage: intarsia {command} " in done.out
    assert done.out == intarsia(command, "--help").out == intarsia(command, "-h").out
    assert all(len(line) <= 120 for line in done.out.splitlines())


def test_the_document_is_what_the_program_says(intarsia, root):
    done = intarsia("help", "--markdown")
    assert done.code == 0
    assert done.out == (root / "docs" / "command-line.md").read_text(), "run make docs"


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(intarsia, flag):
    done = intarsia(flag)
    assert done.code == 0
    assert re.match(r"intarsia  \d+\.\d+\.\d+\n", done.out)
    assert re.search(r"^NVRTC     1\d\.\d+, /\S+$", done.out, re.M)


def test_version_says_what_is_not_there(intarsia):
    done = intarsia("--version", INTARSIA_NVRTC="none", INTARSIA_PYTHON="/no/python")
    assert done.code == 0 and done.err == ""
    assert "NVRTC     not found: install a CUDA toolkit" in done.out
    assert "Python    not found" in done.out


# -- wrong calls -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "hint"), [
    ("lnik", "did you mean 'intarsia link'?"),
    ("inspct", "did you mean 'intarsia inspect'?"),
    ("frobnicate", "'intarsia help' lists the commands"),
    ("x" * 5000, "'intarsia help' lists the commands"),
])
def test_unknown_commands(intarsia, word, hint):
    done = intarsia(word)
    assert done.code == 2 and done.out == ""
    assert done.err == f"error: there is no command '{word}'\n  hint: {hint}\n"


def test_help_of_an_unknown_command(intarsia):
    done = intarsia("help", "nothing")
    assert done.code == 2 and "there is no command 'nothing'" in done.err


@pytest.mark.parametrize(("arguments", "message", "hint"), [
    (["link", "--reprot", "text", "x.ptx"], "'intarsia link' has no option '--reprot'", "did you mean --report?"),
    (["cc", "--outptu=x", "x.cu"], "'intarsia cc' has no option '--outptu'", "did you mean --output?"),
    (["fmt", "-z", "x.ptx"], "'intarsia fmt' has no option '-z'", "'intarsia help fmt' lists its options"),
    (["cc", "-o"], "--output needs a value (FILE)", None),
    (["check", "--quiet=1"], "--quiet takes no value", None),
    (["inspect"], "no PTX file given", "usage: intarsia inspect"),
    (["inspect", "a.ptx", "b.ptx"], "one PTX file is expected, but 'b.ptx' follows", None),
    (["cc"], "no source file given", "usage: intarsia cc"),
    (["link"], "no PTX file given", "for example: intarsia link"),
    (["link", "x.ptx", "--report", "xml"], "--report takes text or json, not 'xml'", None),
    (["sim"], "no PTX file given", "usage: intarsia sim"),
    (["sim", "x.ptx", "--grid", "0"], "--grid takes one to three whole numbers above 0", None),
    (["sim", "x.ptx", "--block", "1,2,3,4"], "--block takes one to three whole numbers above 0", None),
    (["sim", "x.ptx", "--block", "1,,2"], "--block takes one to three whole numbers above 0", None),
    (["cache", "cleer"], "the cache can't 'cleer'", "did you mean 'clear'?"),
    (["cache", "show", "path"], "one action is expected, but 'path' follows", None),
])
def test_wrong_options(intarsia, arguments, message, hint):
    done = intarsia(*arguments)
    assert done.code == 2 and done.out == ""
    assert done.err.startswith(f"error: {message}")
    if hint:
        assert f"  hint: {hint}" in done.err


# -- options ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def kernel(intarsia):
    path = intarsia.folder / "kernel.ptx"
    path.write_text(PTX)
    return path


@pytest.mark.parametrize("spelling", [["-o", "x"], ["-ox"], ["--output", "x"], ["--output=x"]])
def test_spellings_of_an_option(intarsia, kernel, spelling):
    assert intarsia("fmt", *spelling, kernel).code == 0
    assert "nothing" in (intarsia.folder / "x").read_text()


def test_options_may_follow_operands_and_end_with_two_dashes(intarsia, kernel):
    assert intarsia("fmt", kernel, "-o", "x").code == 0
    odd = intarsia.folder / "-odd.ptx"
    odd.write_text(PTX)
    assert intarsia("fmt", "-odd.ptx").code == 2
    assert intarsia("fmt", "--", "-odd.ptx").out == (intarsia.folder / "x").read_text()


# -- files -----------------------------------------------------------------------------------------------------------


def test_standard_input_and_output(intarsia, kernel):
    printed = intarsia("fmt", kernel).out
    assert intarsia("fmt", "-", stdin=PTX).out == printed
    assert intarsia("fmt", "-", "-o", "-", stdin=PTX).out == printed


def test_a_file_is_replaced_whole_and_keeps_its_mode(intarsia, kernel):
    kernel.chmod(0o640)
    before = kernel.stat().st_ino
    assert intarsia("fmt", kernel, "-o", kernel).code == 0
    assert stat.S_IMODE(kernel.stat().st_mode) == 0o640
    assert kernel.stat().st_ino != before, "written aside and renamed"
    assert os.listdir(intarsia.folder) == ["kernel.ptx"]


def test_a_new_file_gets_the_mode_of_the_umask(intarsia, kernel):
    old = os.umask(0o027)
    try:
        assert intarsia("fmt", kernel, "-o", "new.ptx").code == 0
    finally:
        os.umask(old)
    assert stat.S_IMODE((intarsia.folder / "new.ptx").stat().st_mode) == 0o640


def test_a_link_stays_a_link(intarsia, kernel):
    target = intarsia.folder / "target.ptx"
    target.write_text("old")
    link = intarsia.folder / "link.ptx"
    link.symlink_to(target)
    assert intarsia("fmt", kernel, "-o", link).code == 0
    assert link.is_symlink() and "nothing" in target.read_text()


def test_a_device_is_written_to(intarsia, kernel):
    assert intarsia("fmt", kernel, "-o", "/dev/null").code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_full_disk_is_an_error(intarsia, kernel, program):
    done = intarsia("fmt", kernel, "-o", "/dev/full")
    assert done.code == 1 and done.err == "error: can't write '/dev/full': No space left on device\n"
    with open("/dev/full", "w") as full:
        for command in (["help"], ["inspect", kernel], ["fmt", kernel]):
            done = subprocess.run([program, *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            assert done.returncode == 1 and "No space left on device" in done.stderr


def test_a_folder_that_is_not_there(intarsia, kernel):
    done = intarsia("fmt", kernel, "-o", "no/such/folder/x.ptx")
    assert done.code == 1 and done.err == "error: can't write 'no/such/folder/x.ptx': No such file or directory\n"


@pytest.mark.parametrize("command", ["inspect", "check", "fmt", "link", "sim"])
def test_files_that_can_not_be_read(intarsia, command):
    done = intarsia(command, "missing.ptx")
    assert done.code == 1 and done.out == ""
    assert "missing.ptx" in done.err and "No such file or directory" in done.err
    done = intarsia(command, "/")
    assert done.code == 1 and done.out == ""


@pytest.mark.parametrize("content", [b"", b"\0", b"\x7fELF\x02\x01\x01" + bytes(200), b"hello\n", PTX.encode()[:-8],
                                     b".version 8.0\n.target sm_80\n" + b"{" * 10_000, b"\xff" * 100_000])
@pytest.mark.parametrize("command", ["inspect", "check", "fmt", "link"])
def test_what_is_no_ptx(intarsia, command, content):
    (intarsia.folder / "x.ptx").write_bytes(content)
    done = intarsia(command, "x.ptx")
    assert done.code == 1 and done.out == ""
    assert re.match(r"x\.ptx:\d+:\d+: error: ", done.err) or done.err.startswith("x.ptx: error: "), done.err[:200]


def test_diagnostics_are_coloured_only_on_a_terminal(program, environment, intarsia):
    def on_terminal(**variables):
        pid, terminal = os.forkpty()
        if pid == 0:
            os.execve(program, [str(program), "nonsense"], {**environment, "TERM": "xterm", **variables})
        seen = b""
        try:
            while piece := os.read(terminal, 4096):
                seen += piece
        except OSError:
            pass
        os.close(terminal)
        os.waitpid(pid, 0)
        return seen

    assert b"\033[" in on_terminal()
    assert b"\033[" not in on_terminal(NO_COLOR="1")
    assert b"\033[" not in on_terminal(TERM="dumb")
    assert "\033[" not in intarsia("nonsense").err
