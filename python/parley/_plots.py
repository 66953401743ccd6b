"""The main pictures, drawn with matplotlib.

Every function draws on ``ax``, or on a new figure, and returns its Axes.
"""

import pandas as pd


def _axes(ax):
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # optional, and slow to load

    return plt.subplots(layout="constrained")[1]


def _have(table, what):
    if table is None:
        raise ValueError(f"this study has no {what}")
    return table


def plot_scores(results, x=1, y=2, subjects=None, colour="site", ax=None):
    """Subjects on two factors; colour is a column of the joined scores.

    The picture has a mark for every subject: it stays at the site.
    """
    scores = results.scores() if subjects is None else results.join(subjects)
    for column in (f"factor_{x}", f"factor_{y}", colour):
        if column not in scores.columns:
            raise ValueError(f"there is no column {column!r} among {', '.join(scores.columns)}")
    ax = _axes(ax)
    values = scores[colour]
    if pd.api.types.is_numeric_dtype(values):
        marks = ax.scatter(scores[f"factor_{x}"], scores[f"factor_{y}"], c=values, s=12)
        ax.figure.colorbar(marks, ax=ax, label=colour)
    else:
        for level, rows in scores.groupby(values.fillna("not known"), sort=True):
            ax.scatter(rows[f"factor_{x}"], rows[f"factor_{y}"], s=12, label=str(level))
        ax.legend(title=colour)
    ax.set(xlabel=f"factor {x}", ylabel=f"factor {y}")
    return ax


def plot_loadings(results, factor=1, features=20, ax=None):
    """The features with the largest loadings on a factor, with 95 % intervals.

    Intervals (estimate ± 1.96 standard errors) stand where the study has
    standard errors.
    """
    table = _have(results.loadings, "loadings")
    name = f"factor_{factor}"
    if name not in table.columns:
        raise ValueError(f"there is no factor {factor}")
    order = table[name].abs().sort_values(ascending=False, kind="stable").index[:features]
    table = table.loc[order[::-1]]
    errors = 1.96 * table[f"se_{factor}"] if f"se_{factor}" in table.columns else None
    ax = _axes(ax)
    ax.errorbar(table[name], range(len(table)), xerr=errors, fmt="o", markersize=4)
    ax.axvline(0, color="grey", linewidth=0.8)
    ax.set_yticks(range(len(table)), table["feature"] + " (" + table["view"] + ")")
    ax.set_xlabel(f"loading on factor {factor}, in standard deviations of a scaled feature")
    return ax


def plot_variance(results, ax=None):
    """Share of each view's variance that each factor explains by itself."""
    table = _have(results.variance_explained, "factors")
    table = table[table["factor"] > 0]
    wide = table.pivot(index="factor", columns="view", values="r2")[list(table["view"].unique())]
    ax = _axes(ax)
    image = ax.imshow(wide, cmap="Blues", vmin=0, aspect="auto")
    ax.set_xticks(range(wide.shape[1]), wide.columns)
    ax.set_yticks(range(wide.shape[0]), wide.index)
    ax.set(xlabel="view", ylabel="factor")
    ax.figure.colorbar(image, ax=ax, label="share of variance explained")
    return ax


def plot_coefficients(results, ax=None):
    """Regression coefficients with intervals of 95 %, in the features' own units."""
    table = _have(results.coefficients, "coefficients")[::-1]
    ax = _axes(ax)
    low, high = table["estimate"] - table["low_95"], table["high_95"] - table["estimate"]
    ax.errorbar(table["estimate"], range(len(table)), xerr=[low, high], fmt="o", markersize=4)
    ax.axvline(0, color="grey", linewidth=0.8)
    names = table["feature"]
    if "class" in table.columns:
        names = names.where(table["class"].eq(""), table["class"] + ": " + names)
    ax.set_yticks(range(len(table)), names)
    ax.set_xlabel("coefficient, with its interval of 95 %")
    return ax
