"""The paper's experiments, one folder per figure: ``python -m experiments --help``."""
