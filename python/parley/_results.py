"""A results directory as data frames."""

import json
from functools import cached_property
from pathlib import Path

import pandas as pd

from ._tables import check_ids, read_table


class Results:
    """What a study left, or a site's own folder of it.

    ``path`` is a directory as docs/reference/results.md describes it. Files
    are read when they are first asked for. Frames are the files' columns,
    ids and names as text; loadings are in scaled units, coefficients in the
    features' own.

    Scores, and everything else below ``sites/``, are about single subjects:
    where a site's folder came from a real site, they must not leave it.
    """

    def __init__(self, path):
        self.path = Path(path)
        if not (self.path / "metrics.json").is_file():
            why = (
                "this study has not ended: run the same command again"
                if (self.path / "plan.yaml").is_file()
                else "give the directory that 'parley run' printed"
            )
            raise FileNotFoundError(f"{self.path} has no metrics.json\n  hint: {why}")

    def __repr__(self):
        return f"parley.Results({str(self.path)!r})"

    def _json(self, name):
        with open(self.path / name, encoding="utf-8") as f:
            return json.load(f)

    def _optional(self, name):
        path = self.path / name
        return read_table(path) if path.is_file() else None

    @cached_property
    def metrics(self):
        """Named numbers, as a Series; see also verdicts."""
        return pd.Series({k: v for k, v in self._json("metrics.json").items() if k != "verdicts"}, name="value")

    @cached_property
    def verdicts(self):
        """Sentences that speak against relying on the model, most severe first."""
        return self._json("metrics.json").get("verdicts", [])

    @cached_property
    def model(self):
        """model/model.json as it is."""
        return self._json("model/model.json")

    @cached_property
    def privacy(self):
        """The statement of privacy.json; None of a study without protection."""
        return self._json("privacy.json") if (self.path / "privacy.json").is_file() else None

    @cached_property
    def rounds(self):
        """One row for each round and site: kind, bytes, release_sha256, left."""
        with open(self.path / "rounds.jsonl", encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        rows = [{"round": r["round"], **s} for r in lines for s in r["sites"]]
        return pd.DataFrame(rows).drop(columns="request", errors="ignore")

    @cached_property
    def loadings(self):
        """model/loadings.csv; None if the method has none."""
        return self._optional("model/loadings.csv")

    @cached_property
    def site_means(self):
        """model/site-means.csv; None where sites have no means of their own."""
        return self._optional("model/site-means.csv")

    @cached_property
    def coefficients(self):
        """The regression table, model/coefficients.csv; None if there is none.

        docs/reference/results.md has its columns.
        """
        return self._optional("model/coefficients.csv")

    @cached_property
    def variance_explained(self):
        """Share of each view's variance that each factor explains by itself.

        Columns view, factor (from 1; 0 is all factors together), r2. Numbers
        of single factors do not add up. None if the method has no factors.
        """
        views = self.model.get("views") or []
        if not any("r2_by_factor" in v for v in views):
            return None
        rows = []
        for v in views:
            shares = [v.get("r2"), *(v.get("r2_by_factor") or [])]
            rows += [{"view": v["name"], "factor": i, "r2": x} for i, x in enumerate(shares)]
        return pd.DataFrame(rows).astype({"r2": float})

    @property
    def sites(self):
        """Names of the sites whose own folders are here."""
        folder = self.path / "sites"
        return sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []

    def scores(self, site=None):
        """Scores of the subjects: site, id, factor_1 …, sd_1 ….

        Of one site, or of all whose folders are here. Raises
        FileNotFoundError if there are none.
        """
        found = []
        for name in [site] if site is not None else self.sites:
            path = self.path / "sites" / name / "scores.csv"
            if path.is_file():
                table = read_table(path)
                table.insert(0, "site", name)
                found.append(table)
        if not found:
            where = "no site" if site is None else f"site {site!r}"
            raise FileNotFoundError(f"{self.path} has scores of {where}")
        return pd.concat(found, ignore_index=True)

    def table(self, name, site=None):
        """tables/NAME.csv of the shared report, or of a site's own page."""
        return self._beside("tables", name, site)

    def figure(self, name, site=None):
        """The numbers behind a picture: figures/NAME.csv."""
        return self._beside("figures", name, site)

    def _beside(self, kind, name, site):
        folder = self.path if site is None else self.path / "sites" / site
        path = folder / kind / f"{name}.csv"
        if not path.is_file():
            there = ", ".join(sorted(p.stem for p in (folder / kind).glob("*.csv"))) or "none"
            raise FileNotFoundError(f"{path} does not exist\n  hint: there are: {there}")
        return read_table(path)

    def join(self, subjects):
        """Scores of all sites here with what is known of the subjects."""
        return join_subjects(self.scores(), subjects)


def join_subjects(scores, subjects):
    """Add the columns of ``subjects`` to ``scores``.

    ``subjects`` is a frame with a column id (and site, if ids of several
    sites may be equal), or the path of a subjects.csv. Every score is kept;
    what is not known of a subject is missing. Raises if ids are not text,
    stand twice, or if no subject is known.
    """
    if not isinstance(subjects, pd.DataFrame):
        subjects = read_table(subjects)
    check_ids(subjects, "subjects")
    check_ids(scores, "scores")
    key = ["site", "id"] if "site" in scores.columns and "site" in subjects.columns else ["id"]
    if key == ["id"] and scores["id"].duplicated().any():
        raise ValueError(
            "subjects of different sites have the same id\n"
            "  hint: give subjects a column 'site', or join each site by itself"
        )
    both = [c for c in subjects.columns if c in scores.columns and c not in key]
    if both:
        raise ValueError(f"scores and subjects both have a column {both[0]!r}\n  hint: rename that of subjects")
    joined = scores.merge(subjects, on=key, how="left", indicator=True)
    if len(joined) and not (joined["_merge"] == "both").any():
        raise ValueError("no id of the scores is among the subjects")
    return joined.drop(columns="_merge")
