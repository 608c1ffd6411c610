"""Writes the events of a tinygrad profile, a pickle, as lines of JSON. Times are in ns.

Nothing that the pickle names is imported or run: each class in it becomes an empty one of the same name. So tinygrad need not be installed, and a
pickle from anybody can be read.
"""
import decimal
import json
import pickle
import re
import sys


class Kept:
    """An object of some class: what it was made with, and its attributes."""

    def __new__(cls, *made_with, **attributes):
        kept = super().__new__(cls)
        kept.made_with = made_with
        vars(kept).update(attributes)
        return kept

    def __init__(self, *made_with, **attributes):
        pass


class Unpickler(pickle.Unpickler):
    known = {("decimal", "Decimal"): decimal.Decimal}

    def find_class(self, module, name):
        if (module, name) not in self.known:
            self.known[module, name] = type(name, (Kept,), {})
        return self.known[module, name]


def text(name):
    """A name as people read it: without colours, and without what only looks events up."""
    name = getattr(name, "display_name", name)
    return re.sub("\x1b\\[[0-9;]*m", "", name).strip() if isinstance(name, str) else "?"


def size(allocation):
    """How many bytes an allocation has, where it says so."""
    count, of = allocation.get("sz"), allocation.get("dtype")
    bits = vars(of).get("bitsize") or (of.made_with[1] if len(of.made_with) > 1 else None) if isinstance(of, Kept) else None
    return count * ((bits + 7) // 8) if isinstance(count, int) and isinstance(bits, int) else None


class Clocks:
    """What has to be added to the times of each device, us."""

    def __init__(self, events):
        devices = [event for event in events if type(event).__name__ == "ProfileDeviceEvent"]
        self.ahead = {event.device: vars(event).get("tdiff", 0) for event in devices}

    def ns(self, device, us):
        return int((decimal.Decimal(us) + decimal.Decimal(self.ahead.get(device, 0))) * 1000)

    def range(self, device, name, start, end):
        return {"device": device, "name": text(name), "start": self.ns(device, start), "end": self.ns(device, start if end is None else end)}


def lines(events):
    clocks = Clocks(events)
    for event in events:
        sort, its = type(event).__name__, vars(event) if isinstance(event, Kept) else {}
        if sort == "ProfileRangeEvent":
            yield {"event": "range", **clocks.range(event.device, event.name, event.st, event.en)}
        elif sort == "ProfileGraphEvent":
            ops = [clocks.range(one.device, one.name, event.sigs[one.st_id], event.sigs[one.en_id]) for one in event.ents]
            yield {"event": "graph", "ops": ops}
        elif sort == "ProfilePointEvent":
            arg = its.get("arg")
            arg = arg if isinstance(arg, dict) else {}
            at = clocks.ns(None, event.ts)
            if event.name == "exec":
                yield {"event": "exec", "device": event.device, "name": text(arg.get("name")), "at": at}
            elif event.name == "alloc":
                yield {"event": "alloc", "device": event.device, "buffer": event.key, "bytes": size(arg), "at": at}
            elif event.name == "free":
                yield {"event": "free", "device": event.device, "buffer": event.key, "at": at}
            elif event.name == "marker":
                yield {"event": "marker", "name": text(arg.get("name")), "at": at}
            else:
                yield {"event": "other"}
        elif sort not in ("ProfileDeviceEvent", "ProfileProgramEvent"):
            yield {"event": "other"}


def main(file):
    with open(file, "rb") as profile:
        events = Unpickler(profile).load()
    if not isinstance(events, list) or not any(type(event).__name__.startswith("Profile") for event in events):
        raise ValueError("it holds no events of tinygrad")
    for line in lines(events):
        print(json.dumps(line))


try:
    main(sys.argv[1])
except BrokenPipeError:
    sys.exit(1)
except Exception as error:  # A damaged pickle may raise anything.
    sys.exit(f"{error}" if isinstance(error, (OSError, ValueError)) else f"it is no pickle, or a damaged one ({type(error).__name__}: {error})")
