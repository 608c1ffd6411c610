"""Writes the calls and operations of a trace as a profile that tinygrad's viz opens: tinygrad_profile.py TRACE PROFILE."""

import pickle
import sqlite3
import sys
from decimal import Decimal

from tinygrad.helpers import ProfileRangeEvent

QUERY = """
SELECT 'GPU ' || gpuId || ' queue ' || queueId, string, start, "end" FROM rocpd_op O JOIN rocpd_string S ON S.id = O.description_id
UNION ALL SELECT 'thread ' || pid || ' ' || tid, string, start, "end" FROM rocpd_api A JOIN rocpd_string S ON S.id = A.apiName_id
"""

trace = sqlite3.connect(sys.argv[1])
with open(sys.argv[2], "wb") as profile:
    rows = trace.execute(QUERY)
    events = [ProfileRangeEvent(track, name, Decimal(start) / 1000, Decimal(end) / 1000) for track, name, start, end in rows]
    pickle.dump(events, profile)
