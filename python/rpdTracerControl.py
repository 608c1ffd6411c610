"""Recording from inside a Python program, with or without `rpd record` around it.

    from rpdTracerControl import rpdTracerControl

    rpdTracerControl.setFilename("trace.rpd")    # before the first instance
    profile = rpdTracerControl()                 # loads the recorder, creates the file
    profile.start()
    ...                                          # recorded
    profile.stop()

    with rpdTracerControl() as profile:
        ...                                      # recorded

Starts and stops of all instances and threads are counted: recording runs while there were more starts than stops. With
multiprocessing make one instance in the main process before others are started: it creates the file, which they find through the
environment.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import sqlite3
import sys
import threading
import warnings

from rpd import library
from rpd.library import text
from rpd.schema import RocpdSchema

__all__ = ["rpdTracerControl"]


class rpdTracerControl:
    """See the module. Every method may be called on any thread."""

    _filename = "trace.rpd"
    # Whether the next use begins a new file.
    _create = True
    # False: everything is a no-op, see skipLoad.
    _active = True
    _recorder = None
    # What this class has put into RPDT_FILENAME; another value there is a launcher's.
    _exported = None

    @classmethod
    def setFilename(cls, name: str | os.PathLike[str], append: bool = False) -> None:
        """Names the trace, for sections that start from now on. A file of that name is replaced unless `append`.

        Where RPDT_FILENAME names a file already, that choice stands: a warning says so. Raises RuntimeError in processes of
        multiprocessing: the main process decides.
        """
        name = os.path.abspath(os.fspath(name))
        launched = cls._launchers_name()
        if launched is not None:
            cls._filename = launched
            if name != os.path.abspath(launched):
                warnings.warn(f"RPDT_FILENAME is set: recording goes to {launched}, not to {name}", stacklevel=2)
            return
        if _is_child():
            if name != os.path.abspath(os.environ.get("RPDT_FILENAME", cls._filename)):
                raise RuntimeError("the name of the trace is the main process's to change")
            return
        cls._filename = name
        cls._create = not append
        if cls._recorder is not None:
            cls.initializeFile()
            if cls._recorder.rpd_setFilename(text(name)) != 0:
                raise RuntimeError(f"no trace can be at {name}: the recorder has said why on stderr")

    @classmethod
    def skipCreate(cls) -> None:
        """The file is somebody else's to create: recordings are added to what is there, or to a new file."""
        cls._create = False

    @classmethod
    def skipLoad(cls) -> None:
        """Does nothing at all, from here on, unless the recorder is in the process already."""
        if not library.is_loaded():
            cls._active = False

    @classmethod
    def initializeFile(cls) -> None:
        """Creates the file, once, in the main process, and tells other processes of it. Part of making an instance."""
        if not cls._active or cls._launchers_name() is not None or _is_child():
            return
        path = os.path.abspath(cls._filename)
        if cls._create:
            _create_trace(path)
            cls._create = False
        cls._exported = os.environ["RPDT_FILENAME"] = path

    @classmethod
    def loadLibrary(cls) -> None:
        """Loads the recorder, paused, once. Part of making an instance."""
        if cls._recorder is not None or not cls._active:
            return
        was_loaded = library.is_loaded()
        if not was_loaded:
            os.environ["RPDT_AUTOSTART"] = "0"
        recorder = library.load()
        if was_loaded and cls._exported is not None:
            recorder.rpd_setFilename(text(cls._exported))
        cls._recorder = recorder
        multiprocessing.util.register_after_fork(cls, cls._finish_with_process)
        if _is_child():
            cls._finish_with_process(cls)

    @staticmethod
    def _finish_with_process(cls):
        # Processes of multiprocessing end by os._exit, after these; the recorder would not hear of it.
        multiprocessing.util.Finalize(None, cls._recorder.rpdfinish, exitpriority=-1000)

    @classmethod
    def _launchers_name(cls):
        name = os.environ.get("RPDT_FILENAME")
        is_own = name == cls._exported or _is_child()
        return None if not name or is_own else name

    def __init__(self):
        self.initializeFile()
        self.loadLibrary()

    def start(self) -> None:
        """One more start of recording."""
        if self._recorder is not None:
            self._recorder.rpdstart()

    def stop(self) -> None:
        """One start less."""
        if self._recorder is not None:
            self._recorder.rpdstop()

    def flush(self) -> None:
        """Returns when all that was recorded is in the file."""
        if self._recorder is not None:
            self._recorder.rpdflush()

    def __enter__(self) -> rpdTracerControl:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def rangePush(self, domain: str, apiName: str, args: str) -> None:
        """A range of this thread begins. Schema 2 has no place for the domain."""
        if self._recorder is not None:
            self._recorder.rpd_rangePush(text(domain), text(apiName), text(args))

    def rangePop(self) -> None:
        """The innermost range of this thread ends."""
        if self._recorder is not None:
            self._recorder.rpd_rangePop()

    def setPythonTrace(self, doTrace: bool) -> None:
        """Every call of a Python function becomes a range, or no longer: apiName its name, args `file:line`.

        On threads that run already, only from Python 3.12 on; threads started later are traced on every version. Functions whose names begin
        with two underscores, and this class's, are left out.
        """
        if self._recorder is None:
            return
        _functions.recorder = self._recorder
        _functions.enabled = bool(doTrace)
        if doTrace:
            getattr(threading, "setprofile_all_threads", threading.setprofile)(_functions)
            sys.setprofile(_functions)
        else:
            # Other threads notice at their next call or return: each must end its own ranges.
            threading.setprofile(None)
            _functions.leave()


class _Functions:
    """The profile function of all threads."""

    def __init__(self):
        self.enabled = False
        self.recorder = None
        self._thread = threading.local()

    def __call__(self, frame, event, argument):
        if not self.enabled:
            self.leave()
        elif event == "call" and not _is_left_out(frame.f_code):
            code = frame.f_code
            self.recorder.rpd_framePush(text(code.co_name), text(f"{code.co_filename}:{code.co_firstlineno}"))
            self._thread.depth = getattr(self._thread, "depth", 0) + 1
        elif event == "return" and not _is_left_out(frame.f_code):
            depth = getattr(self._thread, "depth", 0)
            # Functions that were entered before tracing began return as well.
            if depth > 0:
                self._thread.depth = depth - 1
                self.recorder.rpd_framePop()

    def leave(self):
        """Ends this thread's open ranges and its tracing."""
        sys.setprofile(None)
        for _ in range(getattr(self._thread, "depth", 0)):
            self.recorder.rpd_framePop()
        self._thread.depth = 0


_functions = _Functions()
_OWN_FILES = {function.__code__.co_filename for function in (_Functions.leave, text)}


def _is_left_out(code):
    return code.co_name.startswith("__") or code.co_filename in _OWN_FILES


def _is_child():
    return multiprocessing.parent_process() is not None


def _create_trace(path):
    """An empty trace at `path`, in place of an older trace. Anything else that is there is not touched."""
    if os.path.exists(path):
        if os.path.getsize(path) > 0 and not _is_trace(path):
            raise RuntimeError(f"{path} is there and is no trace: it is left alone; name another file")
        os.remove(path)
    connection = sqlite3.connect(path)
    try:
        RocpdSchema().writeSchema(connection)
    except sqlite3.OperationalError as error:
        raise RuntimeError(f"cannot create {path}: {error}") from error
    finally:
        connection.close()


def _is_trace(path):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        tables = "select 1 from sqlite_master where name = 'rocpd_api'"
        return connection.execute(tables).fetchone() is not None
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()
