"""Chrome trace files: process = core, thread = pipe, slice = one instruction. Perfetto opens them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .report import OpCall


def save(calls: list[OpCall], path) -> Path:
    """Writes all calls one after the other on one modelled time axis."""
    untraced = [call.op for call in calls if not call.trace_events]
    if untraced and len(untraced) == len(calls):
        raise ValueError(f"no trace was recorded for {', '.join(dict.fromkeys(untraced))}: simulate(..., trace=True)")
    events, offset, named = [], 0.0, set()
    for call in calls:
        end = offset
        for event in call.trace_events:
            if event["ph"] == "M":  # names of processes and threads: once
                label = json.dumps(event, sort_keys=True)
                if label not in named:
                    named.add(label)
                    events.append(event)
                continue
            event = {**event, "ts": event.get("ts", 0) + offset}
            end = max(end, event["ts"] + event.get("dur", 0))
            events.append(event)
        offset = end + (call.modelled_us * 0.02 if call.trace_events else 0)  # a gap that the eye can see
    path = Path(path)
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns",
                                "otherData": {"times": "modelled", "ops": [call.op for call in calls]}}))
    return path
