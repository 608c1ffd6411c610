"""rpd.Trace: the rows and reports of a trace as pyarrow tables. See help(rpd)."""

from __future__ import annotations

import html
import json
import os
import subprocess
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Union

import rpd
from rpd.command import find

if TYPE_CHECKING:
    import matplotlib.axes
    import pyarrow

# Columns of a name in HTML.
_NAME = 120


class Trace:
    """A trace that rpd.read opened. help(rpd) shows how to use it."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        self.path: str = os.fspath(path)
        _pyarrow()
        self.info: Dict[str, Any] = self._json("info")
        self._rows: Dict[str, pyarrow.Table] = {}
        if self._losses():
            warnings.warn(f"{self.path} is incomplete: {', '.join(self._losses())}", stacklevel=3)

    @property
    def kernels(self) -> pyarrow.Table:
        """A row for each kernel that ran: name, times, gpu, queue, stream, who launched it when, grid and workgroup."""
        return self._frame("kernels")

    @property
    def copies(self) -> pyarrow.Table:
        """A row for each copy or fill that a GPU did: name is its kind, bytes its size."""
        return self._frame("copies")

    @property
    def apis(self) -> pyarrow.Table:
        """A row for each call of HIP and the like: name, args, times, session, rank, pid, tid."""
        return self._frame("apis")

    @property
    def markers(self) -> pyarrow.Table:
        """A row for each marker: name is its text."""
        return self._frame("markers")

    def top(self, by: Optional[str] = None, *options: str) -> pyarrow.Table:
        """Where the time went, as `rpd top` has it: kernels and copies, or by "kernel", "api", "copy", "marker" and what else --by takes.
        `options` are those of the command, as in t.top("kernel", "--in", "step 3", "--gpu", "0")."""
        return self._table(self._json("top", *(["--by", by] if by else []), *options))

    def gaps(self, of: str = "gpu", *options: str) -> pyarrow.Table:
        """When GPUs were idle, as `rpd gaps` has it: a row for each GPU, or the rows of one of its lists, such as "causes" and "bins".
        `options` are those of the command."""
        gpus = self._json("gaps", *options)
        lists = sorted({key for gpu in gpus for key, value in gpu.items() if isinstance(value, list)})
        if of == "gpu":
            return self._table([{key: value for key, value in gpu.items() if key not in lists} for gpu in gpus])
        if gpus and of not in lists:
            raise ValueError(f"gaps has no {of!r}, but: gpu, {', '.join(lists)}")
        return self._table([{"gpu": gpu["gpu"], **row} for gpu in gpus for row in gpu[of]])

    def overlap(self, *options: str) -> pyarrow.Table:
        """Computing, communication, copies and idle time of each GPU, exposed and hidden, as `rpd overlap` has it. `options` are those of the
        command."""
        return self._table(self._json("overlap", *options))

    def diff(self, other: Union[Trace, str, "os.PathLike[str]"], *options: str) -> pyarrow.Table:
        """What got slower, faster, new and gone from this trace (A) to `other` (B), as `rpd diff` has it: a row for each total, kernel,
        copy, call and marker. `options` are those of the command, as in t.diff("after.rpd", "--iter", "train step", "--skip", "3")."""
        path = other.path if isinstance(other, Trace) else os.fspath(other)
        return self._table(self._json("diff", *options, after=[os.path.abspath(path)])["rows"])

    def sql(self, query: str, *options: str) -> pyarrow.Table:
        """The answer to a query in SQL, which may only read; or all rows of a table or view, or of "kernels" and the like. `options` name a
        part of the trace, as in t.sql("kernels", "--rank", "3")."""
        return self._export(query, *options)

    def plot_utilisation(self, ax: Optional[matplotlib.axes.Axes] = None) -> matplotlib.axes.Axes:
        """Draws how much of the time each GPU was busy, over the run."""
        ax = _axes(ax)
        gpus = self._json("gaps")
        for gpu in gpus:
            parts, zero = gpu["over_time"], self.info["span"]["start_ns"]
            if parts:
                edges = [(part["start_ns"] - zero) / 1e9 for part in parts] + [(parts[-1]["end_ns"] - zero) / 1e9]
                shares = [100 * part["busy_ns"] / (part["end_ns"] - part["start_ns"]) for part in parts]
                ax.stairs(shares, edges, label=f"GPU {gpu['gpu']}")
        if gpus:
            ax.legend(loc="lower right")
        ax.set(xlabel="seconds from the first call", ylabel="% busy", ylim=(0, 101), title="Utilisation")
        return ax

    def plot_gaps(self, ax: Optional[matplotlib.axes.Axes] = None) -> matplotlib.axes.Axes:
        """Draws why the GPUs were idle: a bar of idle time for each cause."""
        ax = _axes(ax)
        sums: Dict[str, float] = {}
        for row in self.gaps("causes").to_pylist():
            sums[row["cause"]] = sums.get(row["cause"], 0) + row["idle_ns"] / 1e6
        causes = sorted(sums, key=lambda cause: sums[cause])
        ax.barh(causes, [sums[cause] for cause in causes])
        ax.set(xlabel="idle, ms", title="Why the GPUs were idle")
        return ax

    def plot_kernel(self, name: str, axes: Optional[List[matplotlib.axes.Axes]] = None) -> List[matplotlib.axes.Axes]:
        """Draws the durations of the kernels with `name` in their names: how often each occurs, and each over the run. Two axes."""
        import pyarrow.compute

        if axes is None:
            axes = list(_pyplot().subplots(1, 2, figsize=(10, 3.5), layout="constrained")[1])
        kernels = self.kernels
        names = kernels["name"].cast("string")
        chosen = kernels.filter(pyarrow.compute.match_substring(names, name))
        if not chosen.num_rows:
            raise ValueError(f"no kernel has {name!r} in its name; t.top(by='kernel') shows the names")
        lengths = [duration / 1000 for duration in chosen["duration_ns"].to_pylist()]
        axes[0].hist(lengths, bins=50)
        axes[0].set(xlabel="duration, us", ylabel="kernels", title=f"{len(lengths)} kernels")
        axes[1].plot(chosen["start_s"].to_pylist(), lengths, ".", markersize=3)
        axes[1].set(xlabel="seconds from the first call", ylabel="duration, us", ylim=(0, None))
        return axes

    def __repr__(self) -> str:
        return f"<rpd trace {self.path!r}: {self._summary()}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{row['calls']}</td><td>{row['total_ns'] / 1e6:.3f}</td><td>{row['percent']:.1f}</td>"
            f"<td style='text-align:left'><bdi>{_shown(row['name'])}</bdi></td></tr>"
            for row in self._json("top", "-n", "10")
        )
        return (
            f"<p><b><bdi>{_shown(self.path)}</bdi></b>: {html.escape(self._summary())}</p><table><thead><tr><th>calls</th>"
            f"<th>total, ms</th><th>%</th><th style='text-align:left'>name</th></tr></thead><tbody>{rows}</tbody></table>"
        )

    def _summary(self) -> str:
        span, sessions, gpus = self.info.get("span"), self.info["sessions"], self.info["gpus"]
        parts = [f"{(span['end_ns'] - span['start_ns']) / 1e9:.3f} s"] if span else []
        for what in ("calls", "operations"):
            parts.append(f"{sum(session[what] for session in sessions)} {what}")
        if gpus:
            parts.append(("GPU " if len(gpus) == 1 else "GPUs ") + ", ".join(str(gpu["gpu"]) for gpu in gpus))
        ranks = [str(session["rank"]) for session in sessions if session["rank"] is not None]
        if ranks:
            parts.append(("rank " if len(ranks) == 1 else "ranks ") + ", ".join(ranks))
        return ", ".join(parts + self._losses())

    def _losses(self) -> List[str]:
        """What was lost while recording; nothing where the trace is complete."""
        lost, launches = self.info["lost"], self.info["launches_without_op"]
        causes = ", ".join(f"{count} {cause}" for cause, count in lost.items())
        losses = [f"{sum(lost.values())} records lost while recording ({causes})"] if lost else []
        return losses + ([f"{launches} launches without an operation"] if launches else [])

    def _frame(self, name: str) -> pyarrow.Table:
        if name not in self._rows:
            self._rows[name] = self._export(name)
        return self._rows[name]

    def _table(self, rows: List[Dict[str, Any]]) -> pyarrow.Table:
        # pyarrow's from_pylist knows the columns of the first row alone.
        names = dict.fromkeys(name for row in rows for name in row)
        return _pyarrow().table({name: [row.get(name) for row in rows] for name in names})

    def _export(self, rows: str, *options: str) -> pyarrow.Table:
        pa = _pyarrow()
        arguments = [_command(), "export", "arrow", *options, os.path.abspath(self.path), rows]
        table, failure = None, None
        with tempfile.TemporaryFile() as said:
            with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=said) as running:
                try:
                    with pa.ipc.open_stream(running.stdout) as reader:
                        table = reader.read_all()
                except (pa.ArrowInvalid, OSError) as error:
                    failure = error
            said.seek(0)
            _check(running.returncode, said.read())
        if table is None:
            raise rpd.Failed(f"rpd export arrow wrote what pyarrow cannot read: {failure}")
        return table

    def _json(self, verb: str, *options: str, after: Sequence[str] = ()) -> Any:
        arguments = [_command(), verb, "--json", *options, os.path.abspath(self.path), *after]
        ran = subprocess.run(arguments, capture_output=True)
        _check(ran.returncode, ran.stderr)
        return json.loads(ran.stdout)


def _shown(name: str) -> str:
    """A name of any characters as a piece of HTML."""
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in name)
    return html.escape(plain if len(plain) <= _NAME else plain[: _NAME // 2] + "…" + plain[-_NAME // 2 :])


def _command() -> str:
    command = find()
    if command is None:
        raise rpd.Failed("there is no rpd command: not in this package, and not on PATH; `make install` installs it")
    return command


def _check(status: int, said: bytes) -> None:
    if status != 0:
        lines = said.decode(errors="replace").strip().splitlines()
        first = lines[0] if lines else f"rpd ended with status {status}"
        raise rpd.Failed(first[len("rpd: ") :] if first.startswith("rpd: ") else first)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise ImportError("rpd.read needs pyarrow: pip install pyarrow (or use the command: rpd export csv)") from error
    return pyarrow


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install matplotlib") from error
    return matplotlib.pyplot


def _axes(ax: Any) -> Any:
    return _pyplot().subplots(figsize=(10, 3.5), layout="constrained")[1] if ax is None else ax
