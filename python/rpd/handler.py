"""Runs a handler for the messages of instrumented kernels that is written in Python: `rpd probe -i -a handler.py -- app`.

The file has a class Handler:

    class Handler:
        def __init__(self, dispatch): ...     # dispatch.kernel, .target, .number, .workgroups, .waves, .process
        def message(self, message): ...       # message.kind, .addresses, .file, .line and so on, as rpd_handler.h has them
        def finish(self, output): ...         # output.print(text), output.value(name, number), output.completed

`rpd` runs this file with two arguments: the socket to make, and the handler's file.
"""

import sys

# `python3 -c` looks for modules in the current directory first.
sys.path[:] = [place for place in sys.path if place]

import ctypes
import json
import math
import os
import resource
import runpy
import socket
import struct
import threading
import types

MEMORY = 16 << 30
VECTOR, LANE_HEADERS = 1 << 62, 1 << 63


class WaveHeader(ctypes.LittleEndianStructure):
    """What stands in front of each message (dh_comms)."""

    _fields_ = [
        ("exec", ctypes.c_uint64),
        ("data_size", ctypes.c_uint64),
        ("timestamp", ctypes.c_uint64),
        ("file", ctypes.c_uint64),
        ("line", ctypes.c_uint32),
        ("column", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("detail", ctypes.c_uint32),
        ("workgroup", ctypes.c_uint16 * 3),
        ("wave", ctypes.c_uint16),
        ("lanes", ctypes.c_uint8),
        ("arch", ctypes.c_uint8),
        ("padding", ctypes.c_uint8 * 6),
    ]


HEADER = ctypes.sizeof(WaveHeader)


class Message:
    """See rpd_handler.h."""

    def __init__(self, header, data, files):
        self.kind, self.detail, self.lanes, self.exec = header.kind, header.detail, header.lanes, header.exec
        self.timestamp, self.workgroup = header.timestamp, tuple(header.workgroup)
        self.line, self.column = (0 if number == 0xFFFFFFFF else number for number in (header.line, header.column))
        self.file = files.get(header.file, "0x%016x" % header.file)
        self.wave, self.xcc, self.se, self.cu = header.wave & 15, header.wave >> 4 & 15, header.wave >> 8 & 7, header.wave >> 11 & 15
        self.data = data
        self.addresses = ()
        if self.kind == 0:
            low, high = (struct.unpack_from("<%dI" % self.lanes, data, place) for place in (0, 4 * self.lanes))
            self.addresses = tuple(low | high << 32 for low, high in zip(low, high))


def said(text):
    """Text that JSON can have."""
    return str(text).encode("utf-8", "replace").decode()


class Handled:
    """A dispatch that has not ended."""

    def __init__(self, handler, begun, process):
        self.filter = begun["filter"]
        self.files = dict(begun["files"])
        self.messages = self.bytes = self.damaged = 0
        dispatch = types.SimpleNamespace(process=process, **{k: v for k, v in begun.items() if k not in ("filter", "files", "id")})
        self.handler = handler(dispatch)

    def take(self, data):
        place = 0
        while place < len(data):
            if len(data) - place < HEADER:
                self.damaged += len(data) - place
                return
            header = WaveHeader.from_buffer_copy(data, place)
            length = header.data_size & ~(VECTOR | LANE_HEADERS)
            end = place + HEADER + length
            if length % 4 or end > len(data):
                self.damaged += len(data) - place
                return
            body = data[place + HEADER + (4 * header.lanes if header.data_size & LANE_HEADERS else 0) : end]
            whole = bin(header.exec).count("1") == header.lanes and (header.kind != 0 or len(body) == 8 * header.lanes)
            if not whole:
                self.damaged += end - place
            elif all(r is None or r[0] <= x < r[1] for r, x in zip(self.filter, header.workgroup)):
                self.messages += 1
                self.bytes += end - place
                self.handler.message(Message(header, body, self.files))
            place = end

    def finish(self, completed):
        text, values = [], []

        def value(name, number):
            # JSON and SQLite have no other numbers.
            if math.isfinite(float(number)):
                values.append([said(name), float(number)])

        output = types.SimpleNamespace(completed=completed, print=lambda line: text.append(said(line) + "\n"), value=value)
        self.handler.finish(output)
        report = {"messages": self.messages, "bytes": self.bytes, "damaged": self.damaged, "text": "".join(text), "values": values}
        return {"report": report}


def converse(connection, handler, name, turn):
    memory, process, dispatches = None, 0, {}
    with connection, connection.makefile("rwb") as lines:
        for line in lines:
            request = json.loads(line)
            ((what, asked),) = request.items()
            with turn:
                try:
                    reply = "done"
                    if what == "hello":
                        memory, process = open(asked["memory"], "rb", buffering=0), asked["process"]
                        reply = {"ready": {"name": name}}
                    elif what == "begin":
                        dispatches[asked["id"]] = Handled(handler, asked, process)
                    elif what == "bytes":
                        dispatches[asked["id"]].take(os.pread(memory.fileno(), asked["length"], 0))
                    else:
                        reply = dispatches.pop(asked["id"]).finish(asked["completed"])
                except BaseException as error:
                    sys.excepthook(*sys.exc_info())
                    reply = {"failed": said("%s: %s" % (type(error).__name__, error))}
            lines.write(json.dumps(reply).encode() + b"\n")
            lines.flush()


def main():
    place, file = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    handler = runpy.run_path(file).get("Handler")
    if handler is None:
        sys.exit("rpd: %s: it has no class Handler" % file)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen()
    turn = threading.Lock()
    while True:
        connection, _ = listener.accept()
        arguments = connection, handler, os.path.basename(file), turn
        threading.Thread(target=converse, args=arguments, daemon=True).start()


if __name__ == "__main__":
    main()
