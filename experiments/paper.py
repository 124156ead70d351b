"""The paper's hyper-parameter grids: the tables of its appendix, as plain data, in this package's names.

T is ``rounds``, K ``picks``, n' ``rows``, B ``batch``, T_max ``t_max``. All are by query except ``GEM_BY_MARGINAL``.
``prior`` is off, as in the paper: it is this package's own addition to the selection.
"""

from __future__ import annotations

# Table "PEP hyperparameters".
PEP_FIXED = {"t_max": 25, "prior": False}
PEP = {"rounds": (20, 30, 40, 50, 75, 100, 125, 150, 175, 200)}

# Table "GEM hyperparameters". "Hidden layer sizes" are read as in the authors' code: the first number is the dimension
# of the noise z, the others are the widths of the hidden layers. (512, 1024, 1024) are 512 inputs and two layers.
GEM_FIXED = {
    "inputs": 512, "hidden": "1024-1024", "learning_rate": 0.0001, "batch": 1000, "alpha": 0.67, "t_max": 100,
}  # fmt: skip
GEM_ACS = {"rounds": (100, 150, 200, 250, 300, 400, 500, 750, 1000)}
GEM_ACS_REDUCED = {"rounds": (50, 75, 100, 125, 150, 200, 250, 300)}
GEM_ADULT = {"rounds": (30, 40, 50, 60, 70, 80, 90, 100, 125, 150, 175, 200)}
"""Also for ADULT (reduced), ADULT* and LOANS."""

# Table "PEPPub hyperparameters".
PEP_PUB_FIXED = {"t_max": 25, "prior": False}
PEP_PUB_ACS = {"rounds": (20, 40, 60, 80, 100, 120, 140, 160, 180, 200)}

# Table "GEMPub hyperparameters"; the rest as GEM. In the paper every round changes the network.
GEM_PUB_FIXED = {**GEM_FIXED, "surprise": 0.0}
GEM_PUB_ACS = {"rounds": (30, 40, 50, 75, 100, 150, 200, 300, 400, 500)}
GEM_PUB_ADULT = {"rounds": (2, 3, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)}

# Table "Baseline hyperparameters".
RAP_FIXED = {"learning_rate": 0.001, "rows": 1000, "prior": False}
RAP = {"picks": (5, 10, 25, 50, 100), "rounds": (2, 5, 10, 25, 50, 75, 100)}
RAP_SOFTMAX_FIXED = {"learning_rate": 0.1, "rows": 1000, "prior": False}
RAP_SOFTMAX = RAP
MWEM_FIXED = {"past": False, "prior": False, "repeat": True}
"""Without past queries it must be possible to select a query again: one step does not remove its error."""
MWEM = {"rounds": (100, 150, 200, 250, 300, 400, 500, 750, 1000)}
MWEM_PAST_FIXED = {"prior": False}
MWEM_REPEAT_FIXED = {"prior": False, "repeat": True}
"""As in the paper, where a query may be selected again. Without ``repeat`` it is ours."""
SMALL_NETWORK = {"inputs": 64, "hidden": "256-256", "batch": 250}
"""Not the paper's: a network that trains in seconds on two cores, for what varies something else than the network."""
MWEM_PAST = {"rounds": (50, 75, 100, 150, 200, 250, 300)}
PMW_PUB = MWEM_PAST
"""The paper has no table for PMWPub; it is MWEM with past queries on other weights."""
DUALQUERY = {"eta": (2.0, 3.0, 4.0, 5.0), "samples": (25, 50, 100, 250, 500)}

# Table "GEM (marginal trick) hyperparameters". By the same reading (256, 512) are 256 inputs and one hidden layer. In
# the paper a round makes all of its steps: it does not end where the residual looks like noise.
GEM_BY_MARGINAL_FIXED = {
    "inputs": 256, "hidden": "512", "learning_rate": 0.0001, "batch": 1000, "alpha": 0.5, "tolerance": 0.0,
}  # fmt: skip
GEM_BY_MARGINAL = {
    "acs-pa": {"t_max": (10_000,), "rounds": (50, 100, 150, 200, 250, 300, 400, 500)},
    "acs-pa-reduced": {"t_max": (10_000,), "rounds": (50, 100, 150, 200, 250, 300, 450)},
    "adult": {"t_max": (10_000,), "rounds": (30, 40, 50, 75, 100, 125, 150, 200)},
    "adult-reduced": {"t_max": (10_000,), "rounds": (5, 10, 15, 20, 25, 30, 35)},
}
