"""librpd_tracer.so: where it is, and its functions."""

import ctypes
import ctypes.util
import os
import shutil
from pathlib import Path

NAME = "librpd_tracer.so"
_TEXT = ctypes.c_char_p
# name: (result, arguments), as in rpd_tracer.h
_FUNCTIONS = {
    "rpdstart": (None, []),
    "rpdstop": (None, []),
    "rpdflush": (None, []),
    "rpdfinish": (None, []),
    "rpd_setFilename": (ctypes.c_int, [_TEXT]),
    "rpd_mark": (None, [_TEXT, _TEXT, _TEXT]),
    "rpd_rangePush": (None, [_TEXT, _TEXT, _TEXT]),
    "rpd_rangePop": (None, []),
    "rpd_framePush": (None, [_TEXT, _TEXT]),
    "rpd_framePop": (None, []),
}


def is_loaded():
    """Whether the recorder is in this process, whoever loaded it."""
    return _loaded() is not None


def load():
    """The recorder, loaded into this process if it is not there yet. Raises RuntimeError if it cannot be."""
    library = _loaded()
    if library is None:
        path = find()
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise RuntimeError(f"cannot load the recorder: {error}") from error
    try:
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise RuntimeError(f"the recorder is older than this package or not rpd's: {error}") from error
    return library


def find():
    """Path of the recorder: RPD_TRACER_PATH, then this package's own, then those of a build, an installation, the system."""
    given = os.environ.get("RPD_TRACER_PATH")
    if given:
        places = [Path(given), Path(given) / NAME]
    else:
        here = Path(__file__).resolve().parent
        places = [here / "native" / "lib" / NAME, here.parent.parent / "target" / "release" / NAME]
        command = shutil.which("rpd")
        if command:
            prefix = Path(command).resolve().parent.parent
            places += [prefix / folder / NAME for folder in ("lib", "lib/rpd", "lib64")]
        places += [Path(folder) / NAME for folder in ("/usr/local/lib", "/usr/local/lib64")]
    for place in places:
        if place.is_file():
            return place.resolve()
    system = None if given else ctypes.util.find_library("rpd_tracer")
    if system:
        return Path(system)
    searched = ", ".join(str(place) for place in places)
    raise RuntimeError(
        f"cannot find the recorder {NAME}: searched {searched}; set RPD_TRACER_PATH to where it is"
    )


def text(value):
    """A str as the recorder takes it: UTF-8 without NUL. What is no character is repaired by the recorder."""
    return value.encode("utf-8", "surrogatepass").replace(b"\0", b"\xef\xbf\xbd")


def _loaded():
    try:
        # By its soname, whatever path it was loaded from.
        return ctypes.CDLL(NAME, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None
