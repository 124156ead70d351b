"""What comes before a run: values that are discovered, and fine columns whose codes are merged from noisy counts."""

from pointillist.refining.listing import SHOWN_SHARE, Listing
from pointillist.refining.stage import Refining, most_groups

__all__ = ["SHOWN_SHARE", "Listing", "Refining", "most_groups"]
