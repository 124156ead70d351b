"""What comes before a run: values that are discovered, and fine columns whose codes are merged from noisy counts."""

from pointillist.refining.before import Stage, stage_alone, stage_of
from pointillist.refining.listing import Listing
from pointillist.refining.stage import Refining, most_groups

__all__ = ["Listing", "Refining", "Stage", "most_groups", "stage_alone", "stage_of"]
