"""Writes the events of a tinygrad profile, a pickle, as lines of JSON, and a line at the end. Times are in ns.

Nothing that the pickle names is imported or run: each class in it becomes an empty one of the same name. So tinygrad need not be installed.
"""
import decimal
import functools
import gc
import json
import pickle
import re
import sys

# No time of a computer has more digits, us.
DIGITS = 16


class Kept:
    """An object of some class: what it was made with, and its attributes."""

    made_with = ()

    def __init__(self, *made_with, **attributes):
        self.made_with = made_with
        vars(self).update(attributes)

    def __setstate__(self, state):
        states = state if isinstance(state, tuple) else (state,)
        for attributes in filter(None, states):
            if vars(self):
                vars(self).update(attributes)
            else:
                # The pickle's own dictionary serves: it keeps that until its end, and a copy would be there twice.
                self.__dict__ = attributes


def reconstructed(cls, *_):
    """What the oldest pickles make objects with."""
    return cls()


class Unpickler(pickle.Unpickler):
    known = {("decimal", "Decimal"): decimal.Decimal, ("copy_reg", "_reconstructor"): reconstructed}

    def find_class(self, module, name):
        if (module, name) not in self.known:
            self.known[module, name] = type(name, (Kept,), {})
        return self.known[module, name]


def of_type(wanted, value):
    """The value, which must be of that type."""
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise TypeError
    return value


@functools.cache
def plain(name):
    """Without colours, and without what UTF-8 cannot have. Names come again and again."""
    return re.sub("\x1b\\[[0-9;]*m", "", name).strip().encode("utf-8", "replace").decode()


def text(name):
    """A name as people read it: without colours, and without what only looks events up."""
    name = getattr(name, "display_name", name)
    return plain(name) if isinstance(name, str) else "?"


def size(allocation):
    """How many bytes an allocation has, where it says so: its type was made with a priority, its bits, a name and a format."""
    made_with = getattr(allocation.get("dtype"), "made_with", ())
    if len(made_with) != 4:
        return None
    total = of_type(int, allocation.get("sz")) * ((of_type(int, made_with[1]) + 7) // 8)
    return total if 0 <= total < 1 << 63 else None


class Clocks:
    """What has to be added to the times of each device, us: to those of kernels, and to those of copies, which differ up to tinygrad 0.12."""

    def __init__(self, events):
        self.ahead = {}
        for event in events:
            if type(event).__name__ == "ProfileDeviceEvent" and isinstance(event.device, str):
                its = vars(event)
                kernels, copies = its.get("tdiff", its.get("comp_tdiff", 0)), its.get("copy_tdiff")
                self.ahead[event.device] = kernels, kernels if copies is None else copies

    def ns(self, us, ahead=0):
        us = decimal.Decimal(us) + decimal.Decimal(ahead)
        if not us.is_finite() or us.is_signed() or us.adjusted() >= DIGITS:
            raise ValueError
        return int(us * 1000)

    def range(self, of, start, end):
        """What a device ran: `of` has its name and the device."""
        device = of_type(str, of.device)
        is_copy = vars(of).get("is_copy") is True
        ahead = self.ahead.get(device, (0, 0))[is_copy]
        # Later versions say so themselves.
        device += ":COPY" if is_copy else ""
        ends = self.ns(start, ahead), self.ns(start if end is None else end, ahead)
        return {"device": text(device), "name": text(of.name), "start": ends[0], "end": ends[1]}


def line(event, clocks):
    """What is written of an event; nothing of one that only explains others."""
    sort = type(event).__name__
    if sort in ("ProfileDeviceEvent", "ProfileProgramEvent"):
        return None
    if sort == "ProfileRangeEvent":
        return {"event": "range", **clocks.range(event, event.st, event.en)}
    if sort == "ProfileGraphEvent":
        ops = [clocks.range(one, event.sigs[one.st_id], event.sigs[one.en_id]) for one in event.ents]
        return {"event": "graph", "ops": ops}
    if sort != "ProfilePointEvent":
        return {"event": "other"}
    arg, at = event.arg if isinstance(event.arg, dict) else {}, clocks.ns(event.ts)
    if event.name == "marker":
        return {"event": "marker", "name": text(arg.get("name")), "at": at}
    device = text(of_type(str, event.device))
    if event.name == "exec":
        return {"event": "exec", "device": device, "name": text(arg.get("name")), "at": at}
    if event.name == "alloc":
        return {"event": "alloc", "device": device, "buffer": of_type(int, event.key), "bytes": size(arg), "at": at}
    if event.name == "free":
        return {"event": "free", "device": device, "buffer": of_type(int, event.key), "at": at}
    return {"event": "other"}


def main(file):
    # The collector would look through all objects again and again while they become more. They have no circles.
    gc.disable()
    with open(file, "rb") as profile:
        events = Unpickler(profile).load()
    if not isinstance(events, list) or not any(type(event).__name__.startswith("Profile") for event in events):
        raise ValueError("it holds no events of tinygrad")
    clocks = Clocks(events)
    for event in events:
        try:
            written = line(event, clocks)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # The event is not as tinygrad writes it.
            written = {"event": "other"}
        if written is not None:
            print(json.dumps(written))
    print(json.dumps({"event": "end"}))


try:
    main(sys.argv[1])
except BrokenPipeError:
    sys.exit(1)
except Exception as error:  # A damaged pickle may raise anything.
    sys.exit(f"{error}" if isinstance(error, (OSError, ValueError)) else f"it is no pickle, or a damaged one ({type(error).__name__}: {error})")
