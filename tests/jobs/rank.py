"""A rank of a job: markers with the wall clock's time in them, as many as its rank says; one line about that on standard output, and in
did.RANK for the check of what was recorded. With --mpi it is a program of MPI whose ranks wait for each other.

    rank.py [--mpi] [--hold DIR]    --hold: says its process id in DIR/held.RANK, and goes on when DIR/go is there
"""

import ctypes
import os
import sys
import time

EACH = 100


def of_mpi():
    """The rank as MPI has it, and what waits for all ranks."""
    mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
    world = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world")))
    rank = ctypes.c_int()
    if mpi.MPI_Init(None, None) or mpi.MPI_Comm_rank(world, ctypes.byref(rank)):
        raise SystemExit("MPI does not start")
    return rank.value, lambda: mpi.MPI_Barrier(world), mpi.MPI_Finalize


def main():
    barrier = finalize = lambda: None
    if "--mpi" in sys.argv:
        rank, barrier, finalize = of_mpi()
    else:
        rank = int(os.environ["SLURM_PROCID"])
    if "--hold" in sys.argv:
        directory = sys.argv[sys.argv.index("--hold") + 1]
        with open(f"{directory}/held.{rank}", "w") as held:
            held.write(f"{os.getpid()}\n")
        while not os.path.exists(f"{directory}/go"):
            time.sleep(0.01)
    recorder = ctypes.CDLL(None)
    push = getattr(recorder, "rpd_rangePush", None) or ctypes.CDLL("librpd_tracer.so").rpd_rangePush
    pop = getattr(recorder, "rpd_rangePop", None) or ctypes.CDLL("librpd_tracer.so").rpd_rangePop
    barrier()
    push(b"job", b"UserMarker", b"together")
    pop()
    for nth in range(EACH + rank):
        push(b"job", b"UserMarker", f"{rank} {nth} {time.time_ns()}".encode())
        pop()
    barrier()
    finalize()
    with open(f"did.{rank}", "a") as did:
        did.write(f"{EACH + rank}\n")
    print(f"rank {rank}: {EACH + rank} markers")


main()
