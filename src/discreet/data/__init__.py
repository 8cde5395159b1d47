"""Labelled data: sets we generate, bundled sets, files, folders, OpenML."""

from discreet.data.dataset import Dataset
from discreet.data.files import from_frame
from discreet.data.generators import fried, linear, logistic, ringnorm, twonorm, waveform
from discreet.data.lookup import NAMES, Handle, load, resolve
from discreet.data.randomised_trials import RandomisedLog, randomised_log

__all__ = [
    "NAMES",
    "Dataset",
    "Handle",
    "RandomisedLog",
    "fried",
    "from_frame",
    "linear",
    "load",
    "logistic",
    "randomised_log",
    "resolve",
    "ringnorm",
    "twonorm",
    "waveform",
]
