# Builds of two kernels by Triton for gfx906, which needs no GPU: one directory of Triton's cache for each line of standard input,
#
#   DIRECTORY KERNEL WARPS BLOCK [OPTION=VALUE...]
#
# with the file of the build's description on standard output, and the dynamic LDS that its launcher would add.
import json
import os
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside), mask=inside)


# The sum over a block goes through LDS, of which each wavefront has a part.
@triton.jit
def dot_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x, y = tl.load(x_ptr + at, mask=inside, other=0.0), tl.load(y_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x * y))


for line in sys.stdin:
    directory, kernel, warps, block, *options = line.split()
    os.environ["TRITON_CACHE_DIR"] = directory
    source = ASTSource(
        fn={"add_kernel": add_kernel, "dot_kernel": dot_kernel}[kernel],
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": int(block)},
    )
    options = {name: int(value) for name, value in (option.split("=") for option in options)}
    build = triton.compile(source, target=GPUTarget("hip", "gfx906", 64), options={"num_warps": int(warps), **options})
    paths = [path for path in build.metadata_group.values() if path.endswith(f"/{kernel}.json")]
    with open(paths[0]) as file:
        print(paths[0], json.load(file)["shared"])
