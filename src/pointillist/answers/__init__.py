"""Answers with error bars: simulated runs on the model, and intervals from them."""

from pointillist.answers.combining import Combined, combine
from pointillist.answers.intervals import Answer, answered, intervals
from pointillist.answers.replicates import Original, Replicate, Replicates, replicated
from pointillist.answers.statistics import Count, Difference, Mean, Quantile, Ratio, Share, Statistic
from pointillist.answers.tables import AnswerTable, tabulated

__all__ = [
    "Answer",
    "AnswerTable",
    "Combined",
    "Count",
    "Difference",
    "Mean",
    "Original",
    "Quantile",
    "Ratio",
    "Replicate",
    "Replicates",
    "Share",
    "Statistic",
    "answered",
    "combine",
    "intervals",
    "replicated",
    "tabulated",
]
