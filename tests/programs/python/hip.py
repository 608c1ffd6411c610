"""A GPU as PyTorch uses one: HIP by ctypes, kernels from a code object (aql_kernel.hip, in CODE_OBJECT) on a module."""

import ctypes
import os


class Gpu:
    """The first GPU, with one kernel. A launch is known by its grid."""

    def __init__(self):
        self._hip = _library()
        self._counters = ctypes.c_void_p()
        module = ctypes.c_void_p()
        self._kernel = ctypes.c_void_p()
        self._call("hipMalloc", ctypes.byref(self._counters), ctypes.c_size_t(8))
        self._call("hipModuleLoad", ctypes.byref(module), os.environ["CODE_OBJECT"].encode())
        self._call("hipModuleGetFunction", ctypes.byref(self._kernel), module, b"aql_count")

    def launch(self, *grids):
        """Runs the kernel once for each number of workgroups, and waits."""
        argument = ctypes.c_void_p(self._counters.value)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        for grid in grids:
            self._call("hipModuleLaunchKernel", self._kernel, grid, 1, 1, 64, 1, 1, 0, None, arguments, None)
        self._call("hipDeviceSynchronize")

    def _call(self, name, *arguments):
        status = getattr(self._hip, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: {status}")


def _library():
    for version in (5, 6, 7):
        try:
            return ctypes.CDLL(f"libamdhip64.so.{version}")
        except OSError:
            pass
    raise RuntimeError("no libamdhip64")
