"""A handler for rpd probe: how far apart the addresses of neighbouring lanes are, for each line of the source.

    rpd probe -i -a strides.py -- ./app
"""

import os
from collections import defaultdict

ADDRESS = 0


class Handler:
    def __init__(self, dispatch):
        self.kernel = dispatch.kernel
        self.apart = defaultdict(list)

    def message(self, message):
        if message.kind == ADDRESS and len(message.addresses) > 1:
            place = "%s:%d" % (os.path.basename(message.file), message.line)
            self.apart[place].append(abs(message.addresses[1] - message.addresses[0]))

    def finish(self, output):
        for place, apart in self.apart.items():
            average = sum(apart) / len(apart)
            output.print("%s: %s: %.0f bytes from lane to lane" % (self.kernel, place, average))
            output.value("stride " + place, average)
