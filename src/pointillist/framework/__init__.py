"""The loop, the protocols of its parts, the kinds of steps, the output rules and the transcript."""

from pointillist.framework.log import Info, Log, Round
from pointillist.framework.loop import Algorithm, Progress, Replay, most_rounds, run
from pointillist.framework.outputs import Average, Last, MovingAverage
from pointillist.framework.parts import Family, Mixing, Output, Start, Step, Strategy, Update, Updated
from pointillist.framework.steps import Draw, Measure, Select

__all__ = [
    "Algorithm",
    "Average",
    "Draw",
    "Family",
    "Info",
    "Last",
    "Log",
    "Measure",
    "Mixing",
    "MovingAverage",
    "Output",
    "Progress",
    "Replay",
    "Round",
    "Select",
    "Start",
    "Step",
    "Strategy",
    "Update",
    "Updated",
    "most_rounds",
    "run",
]
