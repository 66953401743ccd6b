"""Import and export of the tables of MOFA2.

MOFA2 takes one long table with the columns sample, feature, view, group and
value (its create_mofa_from_df); a group is what Parley calls a site.
docs/reference/words.md has the map of words.
"""

import re
from pathlib import Path

import pandas as pd

from ._tables import check_ids, read_table


def from_mofa(table, folder):
    """Write a folder of data for each group of a long table of MOFA2.

    table   frame, or path of a CSV file, with the columns sample, feature,
            view, value and, if there is more than one, group
    folder  gets GROUP/long.csv for each group; files are not replaced

    Returns (sites, views) as write_plan takes them: names of sites with their
    folders, and names of views with their features. Names of sites are those
    of groups in small letters, with a hyphen for all that they may not hold.
    Values that are missing are left out. A feature that stands in several
    views gets the view's name at its end, as in MOFA2.
    """
    if not isinstance(table, pd.DataFrame):
        table = read_table(table)
    lacking = [c for c in ("sample", "feature", "view", "value") if c not in table.columns]
    if lacking:
        raise ValueError(f"the table has no column {lacking[0]!r}: MOFA2's have sample, feature, view, group, value")
    if "group" not in table.columns:
        table = table.assign(group="group1")
    check_ids(table[["sample"]].drop_duplicates().rename(columns={"sample": "id"}), "the samples")
    table = table.rename(columns={"sample": "id"}).dropna(subset=["value"])
    table = table.astype({"view": str, "feature": str, "group": str})

    pairs = table[["view", "feature"]].drop_duplicates()
    shared = set(pairs.loc[pairs["feature"].duplicated(), "feature"])
    several = table["feature"].isin(shared)
    table.loc[several, "feature"] += "_" + table.loc[several, "view"]
    if table.duplicated(["group", "id", "feature"]).any():
        raise ValueError("a sample has two values of one feature")

    sites = {}
    for group in table["group"].unique():
        site = re.sub(r"[^a-z0-9]+", "-", group.lower()).strip("-")
        if not site or len(site) > 40 or site in sites:
            raise ValueError(f"group {group!r} gives no site name of its own: {site!r}\n  hint: rename the group")
        sites[site] = group
    folder = Path(folder)
    for site, group in sites.items():
        rows = table.loc[table["group"] == group, ["id", "view", "feature", "value"]]
        (folder / site).mkdir(parents=True, exist_ok=True)
        rows.sort_values("id", kind="stable").to_csv(folder / site / "long.csv", index=False, mode="x")
        sites[site] = folder / site
    views = {
        view: list(rows["feature"].unique()) for view, rows in table.groupby("view", sort=False)
    }
    return sites, views


def to_mofa(sites, views=None):
    """The long table of MOFA2 for folders of data in wide or long form.

    sites  mapping of names to folders
    views  names of the views to take; else all

    Only numbers: a view with a column of text is refused.
    """
    found = []
    for site, folder in sites.items():
        folder = Path(folder)
        long = [p for p in (folder / "long.csv", folder / "long.csv.gz") if p.is_file()]
        parts = [read_table(p) for p in long]
        for path in [] if long else sorted(folder.glob("view_*.csv")) + sorted(folder.glob("view_*.csv.gz")):
            view = re.fullmatch(r"view_(.*?)\.csv(\.gz)?", path.name).group(1)
            wide = read_table(path)
            part = wide.melt("id", var_name="feature", value_name="value")
            parts.append(part.assign(view=view))
        if not parts:
            raise FileNotFoundError(f"{folder} has neither long.csv nor view_NAME.csv")
        found.append(pd.concat(parts, ignore_index=True).assign(group=site))
    table = pd.concat(found, ignore_index=True).dropna(subset=["value"])
    if views is not None:
        table = table[table["view"].isin(list(views))]
    if not pd.api.types.is_numeric_dtype(table["value"]):
        text = pd.to_numeric(table["value"], errors="coerce").isna()
        if text.any():
            first = table[text].iloc[0]
            raise ValueError(f"{first['feature']!r} of view {first['view']!r} is not a number\n  hint: name the views to take")
        table["value"] = table["value"].astype(float)
    table = table.rename(columns={"id": "sample"})
    return table[["sample", "feature", "view", "group", "value"]].reset_index(drop=True)


def mofa_factors(results):
    """Scores as MOFA2's get_factors(as.data.frame = TRUE) has them."""
    scores = results.scores()
    wide = scores[["id", "site", *(c for c in scores.columns if c.startswith("factor_"))]]
    long = wide.melt(["id", "site"], var_name="factor", value_name="value")
    long["factor"] = long["factor"].str.replace("factor_", "Factor", regex=False)
    long = long.rename(columns={"id": "sample", "site": "group"})
    return long[["sample", "factor", "value", "group"]]


def mofa_weights(results):
    """Loadings, in scaled units, as get_weights(as.data.frame = TRUE) has them."""
    loadings = results.loadings
    wide = loadings[["view", "feature", *(c for c in loadings.columns if c.startswith("factor_"))]]
    long = wide.melt(["view", "feature"], var_name="factor", value_name="value")
    long["factor"] = long["factor"].str.replace("factor_", "Factor", regex=False)
    return long[["feature", "factor", "value", "view"]]
