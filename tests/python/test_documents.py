"""
The programs that the documents show run as they stand there, in a frame of what the text around them supposes. Those
of barriers.md and c-api.md are in test_barriers.py and tests/install.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path


def blocks(root: Path, document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (root / "docs" / document).read_text(), re.M | re.S)


def the_block(root: Path, document: str, language: str, mark: str) -> str:
    """The one that holds `mark`."""
    (found,) = [block for block in blocks(root, document, language) if mark in block]
    return found


IMPORTS = "import ctypes\nimport numpy as np, triton, triton.language as tl\nimport intarsia\n"


def test_the_first_program(python, root, tmp_path):
    (tmp_path / "scale-device.cu").write_text(
        'extern "C" __device__ void scale(float *x, int n, float by) {\n'
        "    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= by;\n}\n"
    )
    done = python(the_block(root, "python.md", "python", "scale-device.cu"))
    assert done.returncode == 0, done.stderr
    assert [float(n) for n in done.stdout.strip("[]\n").split()] == [2 * i for i in range(1000)]


def test_a_host_file(python, root, tmp_path):
    (tmp_path / "shift-host.c").write_text(
        "#include <nvshmem.h>\nvoid *inbox_new(void) { return nvshmem_malloc(4); }\n"
    )
    block = the_block(root, "python.md", "python", "shift-host.c")
    done = python(f"{IMPORTS}intarsia.init()\n{block}print(address > 0)")
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_bare_ptx(python, root, tmp_path):
    (tmp_path / "axpy.ptx").write_text(""".version 8.0
.target sm_80
.address_size 64
.visible .global .f32 table[2] = {0f3F800000, 0f40000000};
.visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    .reg .b64 %rd<3>; .reg .f32 %f<4>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [a];
    ld.global.f32 %f2, [%rd1]; ld.global.f32 %f3, [%rd2];
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.global.f32 [%rd2], %f3;
    ret;
}
""")
    before = "x, y, n, grid, block = intarsia.array([3.0], 'float32'), intarsia.array([1.0], 'float32'), 1, 1, 1\n"
    block = the_block(root, "python.md", "python", "axpy.ptx")
    done = python(f"{IMPORTS}{before}{block}print(y.numpy(), module.variable('table', 'float32').numpy())")
    assert (done.returncode, done.stdout) == (0, "[7.] [1. 2.]\n"), done.stderr


def test_the_region_and_its_call(launch, root, tmp_path):
    (tmp_path / "put-device.cu").write_text(
        the_block(root, "regions.md", "cuda", "put_row")
        + 'extern "C" __device__ float *mailbox(int pe) { return (float *)(size_t)(pe + 16); }\n'
    )
    call = the_block(root, "regions.md", "python", "def kernel(to, source")
    assert call.count("    ...\n") == 1
    declared = the_block(root, "regions.md", "python", "def mailbox")
    done = launch(
        2,
        f"""{IMPORTS}{call.replace("    ...", "    tl.store(source, 7.0)")}
{declared}
@triton.jit
def box(out, pe):
{"".join("    " + line for line in the_block(root, "regions.md", "python", "p = intarsia.call").splitlines(True))}
    tl.store(out, p.to(tl.int64) + mailbox(4).to(tl.int64))

me = intarsia.my_pe()
to, signal = intarsia.symmetric(8, "float32"), intarsia.symmetric(1, "uint64")
source, out = intarsia.array(np.arange(8, dtype=np.float32) + me), intarsia.zeros(1, "int64")
kernel[(1,)](to, source, 8, signal, 1 - me)
box[(1,)](out, me)
intarsia.barrier()
print(to.numpy().tolist() == [7.0, *range(2 - me, 9 - me)], signal.numpy()[0], out.numpy()[0])
to.free(), signal.free()
""",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[pe 0] True 1 36", "[pe 1] True 1 37"]


def test_waits_in_a_pipelined_loop(python, root, tmp_path):
    loop = the_block(root, "regions.md", "python", "wait_chunk")
    body = "".join("    " + line for line in loop.splitlines(True))
    (tmp_path / "w.cu").write_text(
        'extern "C" __device__ void wait_chunk(const int *ready, int k) { while (((volatile int *)ready)[k] == 0); }\n'
    )
    done = python(f"""{IMPORTS}
device = intarsia.load("w.cu")
@triton.jit
def kernel(a_ptr, ready, out, n_chunks, CHUNK: tl.constexpr):
    offsets = tl.arange(0, CHUNK)
    total = tl.zeros((CHUNK,), tl.float32)
{body}        total += a
    tl.store(out + offsets, total)
a, out = intarsia.array(np.arange(64, dtype=np.float32)), intarsia.zeros(16)
kernel[(1,)](a, intarsia.array(np.ones(4, np.int32)), out, 4, 16)
print(out.numpy()[:2])
""")
    assert (done.returncode, done.stdout) == (0, "[ 96. 100.]\n"), done.stderr


def test_a_stage_hook_of_ones_own(python, root):
    hook = the_block(root, "regions.md", "python", "def hook")
    done = python(f"""{IMPORTS}
unit = intarsia.load(source='extern "C" __device__ int two(void) {{ return 2; }}')
{hook}    print("called")
triton.knobs.runtime.add_stages_inspection_hook = hook
@triton.jit
def kernel(out):
    tl.store(out, unit.two())
x = intarsia.zeros(1, "int32")
kernel[(1,)](x)
print(x.numpy())
""")
    assert done.returncode == 0, done.stderr
    assert "called\n" in done.stdout and done.stdout.endswith("[2]\n")


def test_the_dialect_of_ones_own(root, tmp_path):
    text = the_block(root, "dialects.md", "c", "its_dialect_descriptor")
    translate = (
        "#include <string.h>\n"
        "static int translate(const char *source, size_t size, char *ptx, size_t *ptx_size) {\n"
        '    *ptx_size = (size_t)sprintf(ptx, ".version 8.0\\n.target sm_80\\n.address_size 64\\n'
        '.visible .func %.*s() { ret; }\\n", (int)strcspn(source, "\\n"), source);\n'
        "    return size && source[0] != '!';\n}\n"
    )
    head, rest = text.split("static its_status version", 1)
    (tmp_path / "mine.c").write_text(f"{head}{translate}static its_status version{rest}")
    (tmp_path / "kernel.mine").write_text("quux\n")
    shell = the_block(root, "dialects.md", "sh", "mine.so").replace("INTARSIA/include", f"{root}/include")
    shell = shell.replace("intarsia cc", f"{root}/build/release/bin/intarsia cc")
    done = subprocess.run(["sh", "-ec", shell], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and ".func quux" in done.stdout, done.stderr
    (tmp_path / "kernel.mine").write_text("!\n")
    done = subprocess.run(["sh", "-ec", shell], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "kernel.mine:7:1: error: this is no sentence" in done.stderr
