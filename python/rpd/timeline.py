"""The timeline of a trace in a notebook: the page of `rpd export timeline` in a frame. It works offline, and in a notebook that was saved."""

from __future__ import annotations

import html
import os
import subprocess
from typing import Optional, Union

from rpd.trace import _check, _command


class Timeline:
    """The page; a notebook shows it."""

    def __init__(self, page: str, height: int) -> None:
        self.page = page
        self.height = height

    def __repr__(self) -> str:
        return f"<rpd timeline: a page of {len(self.page) / 1e6:.1f} MB; a notebook shows it>"

    def _repr_html_(self) -> str:
        # Its own origin: the page can reach nothing of the notebook's.
        return (
            f'<iframe sandbox="allow-scripts" style="width: 100%; height: {self.height}px; border: 0" '
            f'title="rpd timeline" srcdoc="{html.escape(self.page)}"></iframe>'
        )

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.page)


def show(path: str, within: Optional[str], args: bool, max_mb: int, height: int, levels: bool) -> Timeline:
    """The timeline of the trace at `path`."""
    options = ["--max-mb", str(int(max_mb))]
    if within is not None:
        options.append(f"--in={within}")
    if args:
        options.append("--args")
    if levels:
        options.append("--levels")
    ran = subprocess.run([_command(), "export", "timeline", os.path.abspath(path), *options], capture_output=True)
    _check(ran.returncode, ran.stderr)
    return Timeline(ran.stdout.decode("utf-8"), int(height))
