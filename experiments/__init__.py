"""The paper's figures and tables of accuracy, from one file of runs: ``python -m experiments --help``."""
