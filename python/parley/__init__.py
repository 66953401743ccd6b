"""Read, plot and run Parley studies.

A study is run by the program ``parley``; this package reads what it leaves.
Ids of subjects are always text: "007" stays "007".
"""

from ._data import write_data
from ._mofa import from_mofa, mofa_factors, mofa_weights, to_mofa
from ._plan import plan_text, write_plan
from ._plots import plot_coefficients, plot_loadings, plot_scores, plot_variance
from ._results import Results, join_subjects
from ._run import ParleyError, run

__all__ = [
    "ParleyError",
    "Results",
    "from_mofa",
    "join_subjects",
    "mofa_factors",
    "mofa_weights",
    "plan_text",
    "plot_coefficients",
    "plot_loadings",
    "plot_scores",
    "plot_variance",
    "run",
    "to_mofa",
    "write_data",
    "write_plan",
]
