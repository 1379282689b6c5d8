"""intarsia run: output, failures, signals, and what is left of processes afterwards. No kernel runs here."""

import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest


@pytest.fixture
def script(tmp_path):
    """Writes a script that every PE runs; `pe` and `n` are its number and how many there are."""

    def write(body, name="script.py"):
        path = tmp_path / name
        path.write_text("import os, sys, time, signal, subprocess\n"
                        "pe, n = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])\n" + body)
        return path

    return write


@pytest.fixture
def run(intarsia):
    def call(n, script, *arguments, options=(), **rest):
        return intarsia("run", "--sim", "-n", n, *options, script, *arguments, INTARSIA_PYTHON=sys.executable, **rest)

    return call


@pytest.fixture
def start(program, environment):
    """Starts a job without waiting for it; whatever is left is killed when the test ends."""
    started = []

    def call(n, script, *options, **rest):
        job = subprocess.Popen([program, "run", "--sim", "-n", str(n), *options, str(script)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={**environment, "INTARSIA_PYTHON": sys.executable}, **rest)
        started.append(job)
        return job

    yield call
    for job in started:
        job.kill()
        job.communicate()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def state(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def eventually(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def pids_from(folder, count):
    """Waits for `count` files named by process ids that the PEs write."""
    eventually(lambda: len(list(folder.glob("*.pid"))) == count)
    return [int(path.stem) for path in folder.glob("*.pid")]


def lines_by_pe(text):
    lines = collections.defaultdict(list)
    for line in text.splitlines():
        match = re.fullmatch(r"\[pe (\d+)\] (.*)", line)
        assert match, f"no prefix: {line[:80]!r}"
        lines[int(match[1])].append(match[2])
    return lines


# -- output ----------------------------------------------------------------------------------------------------------


def test_every_pe_knows_its_place(run, script):
    body = """
names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "INTARSIA_PE", "INTARSIA_N_PES", "INTARSIA_BACKEND"]
print(*[os.environ[name] for name in names], os.path.exists("/proc/self/fd/" + os.environ["INTARSIA_SIM_FD"]))
print(sys.argv[1:])
"""
    done = run(3, script(body), "a", "--sim", "-n", "b c")
    assert done.code == 0 and done.err == ""
    lines = lines_by_pe(done.out)
    assert set(lines) == {0, 1, 2}
    for pe in range(3):
        assert lines[pe] == [f"{pe} 3 {pe} 3 {pe} 3 sim True", "['a', '--sim', '-n', 'b c']"]


def test_on_gpus_pes_are_told_where_to_meet(intarsia, script):
    body = """
fd = int(os.environ["INTARSIA_RENDEZVOUS_FD"])
if pe == 0: os.pwrite(fd, b"here", 0)
while os.pread(fd, 4, 0) != b"here": time.sleep(0.01)
names = "INTARSIA_BACKEND", "NVSHMEM_SYMMETRIC_SIZE", "INTARSIA_WAIT_LIMIT"
print(*(os.environ[name] for name in names), "INTARSIA_SIM_FD" in os.environ)
"""
    done = intarsia("run", "-n", 2, "--heap-size", "64M", "--wait-limit", "0.5", script(body),
                    INTARSIA_PYTHON=sys.executable, INTARSIA_SIM_FD="99")
    assert lines_by_pe(done.out) == {pe: [f"cuda {64 << 20} 0.5 False"] for pe in range(2)}


def test_stdout_and_stderr_are_kept_apart(run, script):
    done = run(2, script("print('out', pe)\nprint('err', pe, file=sys.stderr)"))
    assert lines_by_pe(done.out) == {0: ["out 0"], 1: ["out 1"]}
    assert lines_by_pe(done.err) == {0: ["err 0"], 1: ["err 1"]}


def test_lines_written_in_pieces_are_never_mixed(run, script):
    body = """
for i in range(300):
    for piece in range(5):
        os.write(1, b"%d-%d-%d;" % (pe, i, piece))
    os.write(1, b"\\n")
"""
    lines = lines_by_pe(run(4, script(body)).out)
    for pe in range(4):
        assert lines[pe] == ["".join(f"{pe}-{i}-{piece};" for piece in range(5)) for i in range(300)]


def test_a_very_long_line_is_broken_but_complete(run, script):
    done = run(2, script("sys.stdout.write(str(pe) * 5_000_000 + '\\n')"))
    lines = lines_by_pe(done.out)
    for pe in range(2):
        assert "".join(lines[pe]) == str(pe) * 5_000_000
        assert max(map(len, lines[pe])) < 2 << 20


def test_binary_output_and_a_missing_end_of_line(program, environment, script):
    path = script("os.write(1, bytes(range(256)) * 3)")
    done = subprocess.run([program, "run", "--sim", "-n", "2", path], capture_output=True, check=True,
                          env={**environment, "INTARSIA_PYTHON": sys.executable})
    lines = (bytes(range(256)) * 3).split(b"\n")
    for pe in (b"0", b"1"):
        got = re.findall(rb"\[pe " + pe + rb"\] [^\n]*\n", done.stdout, re.DOTALL)
        assert got == [b"[pe " + pe + b"] " + line + b"\n" for line in lines]


def test_one_pe_is_not_prefixed(run, script):
    done = run(1, script("os.write(1, b'no end')\nos.write(2, b'x\\0y')"))
    assert (done.code, done.out, done.err) == (0, "no end", "x\0y")


def test_no_prefix(run, script):
    done = run(3, script("print('line', pe)"), options=["--no-prefix"])
    assert sorted(done.out.splitlines()) == ["line 0", "line 1", "line 2"]


def test_lines_come_while_the_job_runs(start, script):
    job = start(2, script("print('now', pe)\ntime.sleep(60)"))
    assert {job.stdout.readline(), job.stdout.readline()} == {b"[pe 0] now 0\n", b"[pe 1] now 1\n"}
    assert job.poll() is None


def test_standard_input_is_empty_for_several_and_passed_on_to_one(run, script):
    path = script("print(repr(sys.stdin.read()))")
    assert lines_by_pe(run(2, path, stdin="hello").out) == {0: ["''"], 1: ["''"]}
    assert run(1, path, stdin="hello").out == "'hello'\n"


def test_a_slow_reader_slows_the_pes_down_instead_of_filling_the_memory(start, script):
    job = start(2, script("for i in range(100_000): print('x' * 1000)"))
    time.sleep(2)
    with open(f"/proc/{job.pid}/status") as status:
        memory = int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1])
    assert memory < 150_000
    out, err = job.communicate(timeout=120)
    assert job.returncode == 0 and err == b""
    assert len(out.splitlines()) == 200_000


def test_a_reader_that_goes_away_ends_the_job(start, script):
    job = start(2, script("while True: print('again')"))
    assert job.stdout.readline().endswith(b"again\n")
    job.stdout.close()
    assert job.wait(timeout=30) == 128 + signal.SIGPIPE


def test_a_program_that_is_no_python_script(run, script, tmp_path):
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\necho $RANK of $WORLD_SIZE: $1\n")
    path.chmod(0o755)
    assert lines_by_pe(run(2, path, "arg").out) == {0: ["0 of 2: arg"], 1: ["1 of 2: arg"]}


def test_a_program_in_the_current_folder_needs_no_slash(intarsia):
    path = intarsia.folder / "program"
    path.write_text("#!/bin/sh\necho here\n")
    path.chmod(0o755)
    assert intarsia("run", "--sim", "program").out == "here\n"


# -- failures --------------------------------------------------------------------------------------------------------


def test_the_first_failure_ends_all_and_is_named(run, script):
    began = time.monotonic()
    done = run(4, script("if pe == 2: print('bye'); sys.exit(7)\ntime.sleep(60)"))
    assert done.code == 7
    assert "[pe 2] bye" in done.out
    assert done.err == "error: PE 2 exited with code 7; the others were stopped\n"
    assert time.monotonic() - began < 30


def test_a_failure_when_the_others_are_done(run, script):
    done = run(2, script("if pe == 0: time.sleep(1.5); sys.exit(3)"))
    assert done.code == 3
    assert done.err == "error: PE 0 exited with code 3\n"


def test_a_lone_pe_speaks_for_itself(run, script):
    done = run(1, script("sys.exit(3)"))
    assert (done.code, done.err) == (3, "")


def test_what_a_failing_pe_said_last_is_not_lost(run, script):
    done = run(3, script("if pe == 1: raise ValueError('the reason')\ntime.sleep(60)"))
    assert done.code == 1
    assert "[pe 1] ValueError: the reason" in done.err
    assert done.err.endswith("error: PE 1 exited with code 1; the others were stopped\n")


def test_a_pe_killed_by_a_signal(run, script):
    done = run(2, script("if pe == 1: os.kill(os.getpid(), signal.SIGSEGV)\ntime.sleep(60)"))
    assert done.code == 128 + signal.SIGSEGV
    assert done.err.endswith("error: PE 1 was killed by signal 11 (Segmentation fault); the others were stopped\n")
    lines = [line for line in done.err.splitlines() if line.startswith("[pe 1]")]
    assert "[pe 1] Fatal Python error: Segmentation fault" in lines
    assert re.fullmatch(r'\[pe 1\]   File ".*", line \d+ in <module>', lines[-1]), "which line of Python it was"


def test_a_lone_pe_killed_by_a_signal(run, script):
    done = run(1, script("os.kill(os.getpid(), signal.SIGKILL)"))
    assert (done.code, done.err) == (137, "error: PE 0 was killed by signal 9 (Killed)\n")


def test_who_ignores_being_asked_is_killed_after_the_grace_time(run, script):
    body = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(f"{sys.argv[1]}/{pe}", "w").close()
while len(os.listdir(sys.argv[1])) < n: time.sleep(0.01)
if pe == 0: sys.exit(4)
time.sleep(100)
"""
    path = script(body)
    ready = path.parent / "ready"
    ready.mkdir()
    began = time.monotonic()
    done = run(3, path, ready, options=["--grace", "1"])
    assert done.code == 4
    assert 0.9 < time.monotonic() - began < 30


def test_a_time_limit(run, script):
    began = time.monotonic()
    done = run(2, script("time.sleep(100)"), options=["--timeout", "1"])
    assert done.code == 124
    assert "not finished after 1 s; all PEs were stopped" in done.err
    assert time.monotonic() - began < 30


# -- what PEs leave behind -------------------------------------------------------------------------------------------

FAMILY = """
folder = sys.argv[1] if len(sys.argv) > 1 else os.environ["FOLDER"]
sleeper = [sys.executable, "-c", "import time; time.sleep(1000)"]
stubborn = [sys.executable, "-c", "import time, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
            "print('up', flush=True); time.sleep(1000)"]
children = [subprocess.Popen(sleeper), subprocess.Popen(sleeper, start_new_session=True),
            subprocess.Popen(stubborn, start_new_session=True, stdout=subprocess.PIPE)]
children[2].stdout.readline()
for child in children: open(f"{folder}/{child.pid}.pid", "w").close()
"""


@pytest.mark.parametrize("ending", ["sys.exit(5)", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)"])
def test_grandchildren_end_with_the_job(run, script, tmp_path, ending):
    done = run(2, script(FAMILY + ending), tmp_path, options=["--grace", "1"])
    pids = pids_from(tmp_path, len(list(tmp_path.glob("*.pid"))))
    assert len(pids) >= 3
    assert done.code == {"s": 5, "o": 137}[ending[0]] if "_exit" not in ending else done.code == 0
    assert not any(alive(pid) for pid in pids)


def test_grandchildren_end_when_the_job_is_stopped(start, script, tmp_path, monkeypatch):
    path = script(f"os.environ['FOLDER'] = {str(tmp_path)!r}\n" + FAMILY + "time.sleep(1000)")
    job = start(2, path, "--grace", "1")
    pids = pids_from(tmp_path, 6)
    assert all(alive(pid) for pid in pids)
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=30) == 128 + signal.SIGTERM
    assert not any(alive(pid) for pid in pids)


def test_pes_die_with_the_launcher(start, script, tmp_path):
    job = start(3, script(f"open(f'{tmp_path}/{{os.getpid()}}.pid', 'w').close()\ntime.sleep(1000)"))
    pids = pids_from(tmp_path, 3)
    job.kill()
    job.wait()
    eventually(lambda: not any(alive(pid) for pid in pids))


# -- signals ---------------------------------------------------------------------------------------------------------

CATCH = """
def caught(number, frame):
    print("caught", signal.Signals(number).name)
    sys.exit({code})
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, caught)
print("ready")
time.sleep(100)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_every_pe(start, script, number):
    job = start(3, script(CATCH.format(code=0)))
    for _ in range(3):
        assert job.stdout.readline().endswith(b"ready\n")
    job.send_signal(number)
    out, err = job.communicate(timeout=30)
    assert lines_by_pe(out.decode()) == {pe: [f"caught {number.name}"] for pe in range(3)}
    assert (job.returncode, err) == (0, b""), "all ended well"


def test_the_exit_code_after_a_signal_is_that_of_the_first_pe(start, script):
    job = start(2, script(CATCH.format(code=9)))
    for _ in range(2):
        assert job.stdout.readline().endswith(b"ready\n")
    job.send_signal(signal.SIGTERM)
    _, err = job.communicate(timeout=30)
    assert (job.returncode, err) == (9, b"error: stopped by signal 15 (Terminated)\n")


def test_interrupting_twice_kills(start, script):
    job = start(2, script("signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('ready')\ntime.sleep(100)"))
    for _ in range(2):
        assert job.stdout.readline().endswith(b"ready\n")
    job.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert job.poll() is None
    job.send_signal(signal.SIGINT)
    assert job.wait(timeout=4) == 128 + signal.SIGKILL


def test_stopping_and_going_on(start, script, tmp_path):
    job = start(2, script(f"open(f'{tmp_path}/{{os.getpid()}}.pid', 'w').close()\ntime.sleep(100)"))
    pids = pids_from(tmp_path, 2)
    job.send_signal(signal.SIGTSTP)
    eventually(lambda: [state(pid) for pid in [job.pid, *pids]] == ["T", "T", "T"])
    job.send_signal(signal.SIGCONT)
    eventually(lambda: "T" not in [state(pid) for pid in [job.pid, *pids]])
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=30) == 128 + signal.SIGTERM


def test_hang_ups_that_are_ignored_stay_ignored(start, script):
    """As under nohup."""
    job = start(2, script("print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"),
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    out, _ = job.communicate(timeout=30)
    assert lines_by_pe(out.decode()) == {0: ["True"], 1: ["True"]}


# -- on a terminal ---------------------------------------------------------------------------------------------------


def on_terminal(program, environment, arguments, keys, n=1):
    """Runs the program on a terminal of its own, types `keys` at the n-th "ready", and returns code and output."""
    pid, terminal = os.forkpty()
    if pid == 0:
        os.execve(program, [str(program), *map(str, arguments)],
                  {**environment, "INTARSIA_PYTHON": sys.executable, "TERM": "xterm"})
    seen = b""
    typed = False
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 4096):
            seen += piece
            if seen.count(b"ready") == n and not typed:
                typed = True
                os.write(terminal, keys)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode().replace("\r\n", "\n")


def test_a_lone_pe_reads_from_the_terminal(program, environment, script):
    code, seen = on_terminal(program, environment, ["run", "--sim", script("print('ready')\nprint('got', input())")],
                             b"typed\n")
    assert code == 0 and "got typed" in seen


@pytest.mark.parametrize("n", [1, 2])
def test_the_interrupt_key_reaches_each_pe_once(program, environment, script, n):
    body = """
count = 0
def caught(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, caught)
print("ready")
end = time.monotonic() + 20
while count == 0 and time.monotonic() < end: time.sleep(0.01)
time.sleep(0.5)
print("count", count)
"""
    code, seen = on_terminal(program, environment, ["run", "--sim", "-n", n, script(body)], b"\x03", n)
    assert code == 0
    assert seen.count("count 1") == n


def test_prefixes_are_coloured_on_a_terminal_unless_told_not_to(program, environment, script):
    path = script("print('ready')")
    _, seen = on_terminal(program, environment, ["run", "--sim", "-n", 2, path], b"")
    assert "\033[36m[pe 0]\033[0m ready\n" in seen
    _, seen = on_terminal(program, {**environment, "NO_COLOR": "1"}, ["run", "--sim", "-n", 2, path], b"")
    assert "[pe 0] ready\n" in seen and "\033" not in seen


# -- called wrongly --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "message"), [
    (["--sim", "-n", "0", "x.py"], "-n takes 1 to 64 PEs, not 0"),
    (["--sim", "-n", "65", "x.py"], "-n takes 1 to 64 PEs, not 65"),
    (["--sim", "-n", "four", "x.py"], "--pes takes a whole number below 4294967296, not 'four'"),
    (["--sim", "-n", "-1", "x.py"], "--pes takes a whole number below 4294967296, not '-1'"),
    (["--sim", "-n", "4.0", "x.py"], "--pes takes a whole number below 4294967296, not '4.0'"),
    (["--sim", "-n", "99999999999999999999", "x.py"], "--pes takes a whole number"),
    (["--sim", "-n"], "--pes needs a value (N)"),
    (["--sim", "-n", "2"], "no script given"),
    (["--sim", "no-such.py"], "there is no script 'no-such.py'"),
    (["--sim", "."], "'.' is a folder; name the script in it"),
    (["--sim", "--heap-size", "12Q", "x.py"], "--heap-size takes a number of bytes such as 4096, 64K, 16M or 1G"),
    (["--sim", "--arch", "ampere", "x.py"], "--arch takes an architecture such as sm_80 or sm_90a, not 'ampere'"),
    (["--sim", "--timeout", "0", "x.py"], "--timeout takes at least 1 second"),
    (["--arch", "sm_90", "x.py"], "--arch is for simulated GPUs"),
    (["--sim", "--wait-limit", "5", "x.py"], "--wait-limit is for GPUs"),
    (["--wait-limit", "soon", "x.py"], "--wait-limit takes seconds, as 5 or 0.5, not 'soon'"),
    (["--wait-limit", "0", "x.py"], "--wait-limit takes seconds, as 5 or 0.5, not '0'"),
    (["--smi", "x.py"], "did you mean --sim?"),
    (["--sim=yes", "x.py"], "--sim takes no value"),
])
def test_wrong_calls_get_one_sentence(intarsia, arguments, message):
    (intarsia.folder / "x.py").write_text("print('this never runs')")
    done = intarsia("run", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""
    assert len(done.err.splitlines()) <= 2


def test_a_file_that_is_neither_script_nor_program(intarsia):
    (intarsia.folder / "notes.txt").write_text("hello")
    done = intarsia("run", "--sim", "notes.txt")
    assert done.code == 2 and "'notes.txt' is neither a Python script nor a program" in done.err


def test_a_program_that_can_not_be_started(intarsia):
    path = intarsia.folder / "odd"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    done = intarsia("run", "--sim", "-n", 3, "odd")
    assert done.code == 1 and done.err.startswith("error: can't start './odd': No such file or directory")


def test_an_interpreter_that_is_not_there(intarsia):
    (intarsia.folder / "x.py").write_text("")
    done = intarsia("run", "--sim", "x.py", INTARSIA_PYTHON="/no/such/python")
    assert done.code == 2 and "INTARSIA_PYTHON names '/no/such/python', which can't be run" in done.err


def test_no_python_at_all(program, environment, tmp_path):
    """A copy of the program far from any .venv, and nothing in PATH."""
    copy = tmp_path / "bin" / "intarsia"
    copy.parent.mkdir()
    shutil.copy(program, copy)
    (tmp_path / "x.py").write_text("")
    done = subprocess.run([copy, "run", "--sim", "x.py"], cwd=tmp_path, env={**environment, "PATH": str(tmp_path)},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == ("error: no Python was found\n"
                           "  hint: install python3, or set INTARSIA_PYTHON to the path of an interpreter\n")
