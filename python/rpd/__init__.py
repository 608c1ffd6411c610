"""A trace in Python: `rpd.read("trace.rpd")`. It needs pyarrow; pandas, polars and matplotlib are used where they are.

    import rpd

    t = rpd.read("trace.rpd")      # <rpd trace 'trace.rpd': 0.499 s, 14736 calls, 10124 operations, GPU 2>
    t.kernels                      # a pyarrow.Table with a row for each kernel that ran, in order of time
    t.kernels.to_pandas()          # as pandas has it; polars: pl.from_arrow(t.kernels)
    t.apis, t.markers, t.copies    # calls, markers, copies and fills

    t.top()                        # where the GPU's time went; t.top(by="api"), t.top(by="marker")
    t.top("kernel", "--in", "step 3")  # a part of the trace: the options of the command, also of gaps, overlap, diff and sql
    t.gaps()                       # how long each GPU was idle; t.gaps("causes"): why
    t.overlap()                    # what copies and communication hide behind kernels
    t.diff("after.rpd")            # what got slower, faster, new and gone from this trace to another one
    t.sql("select gpuId, count(*) as kernels from op group by 1")

    rpd.show("trace.rpd")          # the timeline of rpd view in a notebook; rpd.show("trace.rpd", within="step 7")

    t.plot_utilisation()           # how busy each GPU was over time (matplotlib)
    t.plot_gaps()                  # why the GPUs were idle
    t.plot_kernel("gemm")          # durations of the kernels with this in their names, and over the run

Times are int64 nanoseconds on the trace's clock (`start_ns`, `duration_ns`) and float64 seconds from its first call on (`start_s`). The
columns of rows are those of `rpd export arrow --help`, those of reports are the keys of `rpd top --json` and the like: all numbers come from
the rpd command. The trace is never changed. What fails raises rpd.Failed, with what the command says.

The package has more: the recorder (`rpdTracerControl`, `rpd.library`), the command (`rpd.command`), the format (`rpd.schema`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Optional, Union

if TYPE_CHECKING:
    from rpd.timeline import Timeline
    from rpd.trace import Trace

__all__ = ["Failed", "read", "show"]


class Failed(RuntimeError):
    """The rpd command could not do something; the text is what it says."""


def read(path: Union[str, "os.PathLike[str]"]) -> Trace:
    """Opens a trace. Raises Failed if the file is none, and ImportError if there is no pyarrow.

    help(rpd) shows what can be done with it.
    """
    # Programs that only record need nothing of this.
    from rpd.trace import Trace

    return Trace(path)


def show(
    path: Union[str, "os.PathLike[str]"],
    within: Optional[str] = None,
    args: bool = False,
    max_mb: int = 10,
    height: int = 640,
    levels: bool = False,
) -> Timeline:
    """Shows the timeline of a trace in a notebook, as rpd view does in a browser; the notebook keeps it.

    `within` names a part: the text of a marker, or a time such as "25%..30%". `args` has the arguments of calls in it. `levels` is for traces
    with too many events: it shows how busy rows are and what takes longest, and no single events. A notebook grows by up to `max_mb` MB.
    Raises Failed if the file is no trace, or the page would be larger.
    """
    from rpd import timeline

    return timeline.show(os.fspath(path), within, args, max_mb, height, levels)
