"""Tests with the program and the examples of this repository.

    PARLEY=/path/to/parley python3 -m unittest discover python/tests
"""

import contextlib
import csv
import gzip
import io
import os
import random
import re
import tempfile
import unittest
from pathlib import Path

import matplotlib
import pandas as pd

import parley

matplotlib.use("Agg")

EXAMPLES = Path(os.environ.get("PARLEY_EXAMPLES") or Path(__file__).resolve().parents[2] / "examples")


def rows(path):
    """A CSV file as text, read without pandas."""
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def setUpModule():
    global folder, study, regression
    folder = Path(unittest.enterModuleContext(tempfile.TemporaryDirectory()))
    study = parley.run(EXAMPLES / "alzheimer/plan.yaml", folder / "study")
    regression = parley.run(two_sites(folder / "two"), folder / "two/results")


def two_sites(where):
    """A plan of a regression, with ids that would be lost as numbers."""
    draw = random.Random(1)
    sites = {}
    for site in ("east", "west"):
        ids = [f"{i:04d}" for i in range(120)]
        view = pd.DataFrame(
            {
                "id": ids,
                "marker": [draw.gauss(0, 1) for _ in ids],
                "smoker": [draw.choice(["yes", "no"]) for _ in ids],
            }
        )
        outcome = ["ill" if draw.random() < 0.3 + 0.4 * (m > 0) else "well" for m in view["marker"]]
        parley.write_data(where / site, pd.DataFrame({"id": ids, "outcome": outcome}), {"blood": view})
        sites[site] = site
    return parley.write_plan(
        where / "plan.yaml",
        "two-sites",
        sites,
        {"blood": view},
        {"name": "regression", "outcome": {"column": "outcome", "levels": ["well", "ill"]}},
        {"protection": "none"},
        question="Does the marker go with illness?",
        subjects=["outcome"],
    )


class Reading(unittest.TestCase):
    def test_frames_hold_what_the_files_hold(self):
        raw = rows(study.path / "model/loadings.csv")
        self.assertEqual(study.loadings["feature"].tolist(), [r["feature"] for r in raw])
        self.assertEqual(study.loadings["factor_1"].tolist(), [float(r["factor_1"]) for r in raw])
        north = study.scores("north")
        raw = rows(study.path / "sites/north/scores.csv")
        self.assertEqual(north["id"].tolist(), [r["id"] for r in raw])
        self.assertEqual(north["sd_6"].tolist(), [float(r["sd_6"]) for r in raw])
        self.assertEqual(len(study.scores()), 333)
        self.assertEqual(study.metrics["subjects"], 333)
        self.assertEqual(study.sites, ["centre", "north", "south"])
        self.assertEqual(set(study.rounds["site"]), set(study.sites))
        self.assertIsNone(study.privacy)
        self.assertIsNone(study.coefficients)

    def test_variance_explained_is_that_of_the_metrics(self):
        table = study.variance_explained
        together = table[table["factor"] == 0].set_index("view")["r2"]
        for view, share in together.items():
            self.assertEqual(share, study.metrics[f"r2/{view}"])
        self.assertEqual(table["factor"].max(), 6)

    def test_regression(self):
        table = regression.coefficients.set_index("feature")
        self.assertEqual(table.loc["marker", "reference"], "")
        self.assertLess(table.loc["marker", "low_95"], table.loc["marker", "estimate"])
        self.assertGreater(table.loc["marker", "estimate"], 0)
        self.assertIsNone(regression.loadings)
        self.assertIsNone(regression.variance_explained)
        with self.assertRaisesRegex(FileNotFoundError, "scores of no site"):
            regression.scores()

    def test_private_study(self):
        private = parley.run(EXAMPLES / "alzheimer/private.yaml", folder / "private")
        self.assertTrue(private.privacy["holds"])
        self.assertEqual(private.privacy["total"]["epsilon"], 3)

    def test_tables_and_figures(self):
        self.assertEqual(len(study.table("top-loadings")), len(rows(study.path / "tables/top-loadings.csv")))
        self.assertIn("centre", study.figure("overview").to_csv())
        with self.assertRaisesRegex(FileNotFoundError, "there are: .*top-loadings"):
            study.table("nothing")

    def test_what_is_no_result(self):
        with self.assertRaisesRegex(FileNotFoundError, "has no metrics.json"):
            parley.Results(EXAMPLES)


class Joining(unittest.TestCase):
    def test_join(self):
        joined = study.join(EXAMPLES / "alzheimer/data/subjects.csv.gz")
        self.assertEqual(len(joined), 333)
        self.assertEqual(set(joined["group"]), {"Impaired", "Control"})

    def test_ids_stay_text(self):
        path = folder / "ids.csv"
        path.write_text("id,value,label\n007,1.5,a\nNA,nUlL,nA\n1e3,2,b\n")
        scores = pd.DataFrame({"id": ["007", "NA", "1e3"], "factor_1": [0.0, 1.0, 2.0]})
        joined = parley.join_subjects(scores, path)
        self.assertEqual(joined["value"].fillna(-1).tolist(), [1.5, -1, 2])
        self.assertEqual(joined["label"].isna().tolist(), [False, True, False])

    def test_what_cannot_be_joined(self):
        scores = study.scores()
        ids = scores[["id"]].assign(x=1)
        with self.assertRaisesRegex(TypeError, "not text"):
            parley.join_subjects(scores, pd.DataFrame({"id": [1, 2]}))
        with self.assertRaisesRegex(ValueError, "more than one row"):
            parley.join_subjects(scores, pd.concat([ids, ids]))
        with self.assertRaisesRegex(ValueError, "no id of the scores"):
            parley.join_subjects(scores, pd.DataFrame({"id": ["nobody"]}))
        with self.assertRaisesRegex(ValueError, "both have a column 'factor_1'"):
            parley.join_subjects(scores, ids.assign(factor_1=0))
        with self.assertRaisesRegex(ValueError, "no column 'id'"):
            parley.join_subjects(scores, pd.DataFrame({"name": ["s001"]}))

    def test_the_same_id_at_two_sites(self):
        scores = pd.DataFrame({"site": ["a", "b"], "id": ["1", "1"], "factor_1": [0.0, 1.0]})
        known = pd.DataFrame({"id": ["1"], "age": [50]})
        with self.assertRaisesRegex(ValueError, "same id"):
            parley.join_subjects(scores, known)
        joined = parley.join_subjects(scores, known.assign(site="b"))
        self.assertEqual(joined["age"].fillna(0).tolist(), [0, 50])


class Running(unittest.TestCase):
    def test_an_interrupted_run_goes_on(self):
        def stop(line):
            if line.startswith("round 3"):
                raise KeyboardInterrupt

        out = folder / "interrupted"
        with self.assertRaises(KeyboardInterrupt):
            parley.run(EXAMPLES / "alzheimer/plan.yaml", out, progress=stop)
        with self.assertRaisesRegex(FileNotFoundError, "run the same command again"):
            parley.Results(out)
        again = parley.run(EXAMPLES / "alzheimer/plan.yaml", out)
        pd.testing.assert_frame_equal(again.scores(), study.scores(), check_exact=True)

    def test_errors_have_the_programs_message(self):
        with self.assertRaises(parley.ParleyError) as caught:
            parley.run(folder / "nowhere.yaml", folder / "none")
        self.assertIn("nowhere.yaml", str(caught.exception))
        self.assertNotIn("parley: error", str(caught.exception))
        self.assertEqual(caught.exception.code, 1)
        with self.assertRaisesRegex(parley.ParleyError, "put parley on PATH"):
            parley.run("plan.yaml", folder / "none", program="/no/such/program")


class Plans(unittest.TestCase):
    def test_text(self):
        frame = pd.DataFrame({"id": ["1"], "age": [50], "on": [True], "stage: a": ["x: 1"]})
        text = parley.plan_text(
            "p", ["a", "b"], {"v": frame}, {"name": "factors", "latent": 1}, {"protection": "none"}, ranges={"age": (0, 120)}
        )
        self.assertIn("      - name: age\n        range: [0.0, 120.0]\n", text)
        self.assertIn('      - name: "on"\n        kind: category\n        levels: ["False", "True"]\n', text)
        self.assertIn('      - name: "stage: a"\n        kind: category\n        levels: ["x: 1"]\n', text)

    def test_levels_of_a_private_study_are_declared(self):
        private = {"protection": "differential", "unit": "subject", "adjacency": "add-remove", "total": {"epsilon": 1.0, "delta": 1e-5}}
        frame = pd.DataFrame({"sex": ["f", "m"]})
        with self.assertRaisesRegex(ValueError, "declare them"):
            parley.plan_text("p", ["a"], {"v": frame}, {"name": "regression"}, private)
        frame["sex"] = pd.Categorical(frame["sex"], categories=["m", "f", "x"])
        self.assertIn("levels: [m, f, x]", parley.plan_text("p", ["a"], {"v": frame}, {"name": "regression"}, private))

    def test_refusals(self):
        frame = pd.DataFrame({"age": [50]})
        with self.assertRaisesRegex(ValueError, "no feature 'size'"):
            parley.plan_text("p", ["a"], {"v": frame}, {}, {}, ranges={"size": (0, 1)})
        with self.assertRaisesRegex(TypeError, "neither number nor category"):
            parley.plan_text("p", ["a"], {"v": pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])})}, {}, {})
        with self.assertRaises(FileExistsError):
            parley.write_plan(folder / "two/plan.yaml", "p", ["a"], {"v": frame}, {}, {})


class Data(unittest.TestCase):
    def test_cells(self):
        subjects = pd.DataFrame({"well": [True, False], "id": ["01", "02"], "seen": pd.to_datetime(["2020-02-29", None])})
        view = pd.DataFrame(
            {
                "id": ["01", "02"],
                "x": [0.1 + 0.2, None],
                "n": pd.array([3, None], dtype="Int64"),
                "kind": pd.Categorical(['a "b", c', None]),
                "at": pd.to_datetime(["2020-02-29T12:30:00", "2021-01-01"]),
            }
        )
        where = parley.write_data(folder / "cells", subjects, {"lab": view})
        self.assertEqual((where / "subjects.csv").read_text(), "id,well,seen\n01,TRUE,2020-02-29\n02,FALSE,\n")
        self.assertEqual(
            (where / "view_lab.csv").read_text(),
            'id,x,n,kind,at\n01,0.30000000000000004,3,"a ""b"", c",2020-02-29T12:30:00\n02,,,,2021-01-01T00:00:00\n',
        )

    def test_refusals_leave_nothing(self):
        good = pd.DataFrame({"id": ["1"], "x": [1.0]})
        for error, words, frame, name in (
            (TypeError, "are not text", pd.DataFrame({"id": [1], "x": [1.0]}), "v"),
            (ValueError, "more than one row for '1'", pd.concat([good, good]), "v"),
            (ValueError, "infinite number", good.assign(x=float("inf")), "v"),
            (TypeError, "holds a list", good.assign(x=[[1]]), "v"),
            (ValueError, "cannot be the name of a view", good, "a/b"),
        ):
            with self.assertRaisesRegex(error, words):
                parley.write_data(folder / "refused", good, {name: frame})
        self.assertEqual([p for p in folder.iterdir() if "refused" in p.name], [])
        with self.assertRaises(FileExistsError):
            parley.write_data(folder / "two", good, {"v": good})


class Mofa(unittest.TestCase):
    def table(self):
        draw = random.Random(2)
        return pd.DataFrame(
            [
                (f"{group}{i:02d}", feature, view, group, factor + draw.gauss(0, 0.5))
                for group in ("Group_1", "Group_2")
                for i in range(40)
                for factor in [draw.gauss(0, 1)]
                for view, features in (("rna", "ABC"), ("protein", "CDE"))
                for feature in features
            ],
            columns=["sample", "feature", "view", "group", "value"],
        )

    def test_there_and_back_with_a_study_between(self):
        table = self.table()
        sites, views = parley.from_mofa(table, folder / "mofa")
        self.assertEqual(list(sites), ["group-1", "group-2"])
        self.assertEqual(views, {"rna": ["A", "B", "C_rna"], "protein": ["C_protein", "D", "E"]})
        plan = parley.write_plan(
            folder / "mofa/plan.yaml", "mofa", sites, views, {"name": "factors", "latent": 1}, {"protection": "none"}
        )
        results = parley.run(plan, folder / "mofa/results")
        factors, weights = parley.mofa_factors(results), parley.mofa_weights(results)
        self.assertEqual(len(factors), 80)
        self.assertEqual(set(factors["factor"]), {"Factor1"})
        self.assertEqual(len(weights), 6)
        truth = table.groupby("sample")["value"].mean()
        close = factors.set_index("sample")["value"].corr(truth)
        self.assertGreater(abs(close), 0.9)

        back = parley.to_mofa(sites).set_index(["sample", "feature"])["value"].sort_index()
        table["feature"] = [f"C_{v}" if f == "C" else f for f, v in zip(table["feature"], table["view"])]
        there = table.set_index(["sample", "feature"])["value"].sort_index()
        pd.testing.assert_series_equal(back, there, check_exact=True)

    def test_wide_folders(self):
        table = parley.to_mofa({"all": EXAMPLES / "alzheimer/data"}, views=["clinic"])
        self.assertEqual(set(table["view"]), {"clinic"})
        self.assertEqual(table["sample"].nunique(), 333)
        with self.assertRaisesRegex(ValueError, "not a number"):
            parley.to_mofa({"east": folder / "two/east"})

    def test_refusals(self):
        table = self.table()
        with self.assertRaisesRegex(ValueError, "no column 'view'"):
            parley.from_mofa(table.drop(columns="view"), folder / "m")
        with self.assertRaisesRegex(ValueError, "two values"):
            parley.from_mofa(pd.concat([table, table]), folder / "m")
        with self.assertRaisesRegex(ValueError, "no site name of its own"):
            parley.from_mofa(table.replace("Group_2", "group 1"), folder / "m")
        with self.assertRaisesRegex(TypeError, "not text"):
            parley.from_mofa(table.assign(sample=range(len(table))), folder / "m")


class Documentation(unittest.TestCase):
    def test_the_page_s_code_runs(self):
        page = (EXAMPLES.parent / "docs/how-to/use-from-r-and-python.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 4)
        back = os.getcwd()
        self.addCleanup(os.chdir, back)
        for block, prepare in zip(blocks, (self.results, self.cohort, self.sites, self.mofa)):
            where = folder / f"page-{prepare.__name__}"
            where.mkdir()
            os.chdir(where)
            prepare()
            names = {"parley": parley}
            with contextlib.redirect_stdout(io.StringIO()):
                exec(block, names)
            self.assertEqual(names["results"].path.name, "mine")

    def results(self):
        Path("results").mkdir()
        os.symlink(study.path, "results/mine")
        Path("data").mkdir()
        packed = (EXAMPLES / "alzheimer/data/subjects.csv.gz").read_bytes()
        Path("data/subjects.csv").write_bytes(gzip.decompress(packed))

    def cohort(self):
        draw = random.Random(5)
        lines = [
            f"{i:03d},{('basel', 'bern')[i % 2]},{draw.choice(['no', 'yes'])},{draw.gauss(60, 9)},{draw.gauss(5, 2)}"
            for i in range(120)
        ]
        Path("cohort.csv").write_text("id,hospital,relapse,age,crp\n" + "\n".join(lines) + "\n")

    def sites(self):
        draw = random.Random(3)
        for site in ("north", "south"):
            Path(site).mkdir()
            lines = [f"{site}{i:02d}," + ",".join(str(draw.gauss(0, 1)) for _ in "abcdef") for i in range(50)]
            Path(site, "view_clinic.csv").write_text("id,a,b,c,d,e,f\n" + "\n".join(lines))
            Path(site, "subjects.csv").write_text("id\n" + "\n".join(x.split(",")[0] for x in lines))

    def mofa(self):
        draw = random.Random(4)
        lines = [f"s{g}{i:02d},f{f},rna,{g},{draw.gauss(0, 1)}" for g in "ab" for i in range(50) for f in range(8)]
        Path("mofa.csv").write_text("sample,feature,view,group,value\n" + "\n".join(lines))


class Plots(unittest.TestCase):
    def tearDown(self):
        matplotlib.pyplot.close("all")

    def test_scores(self):
        ax = parley.plot_scores(study, 1, 2, subjects=EXAMPLES / "alzheimer/data/subjects.csv.gz", colour="group")
        self.assertEqual(sum(len(c.get_offsets()) for c in ax.collections), 333)
        self.assertEqual([t.get_text() for t in ax.get_legend().get_texts()], ["Control", "Impaired"])
        ax = parley.plot_scores(study, 3, 4, colour="sd_1")
        self.assertEqual(len(ax.collections[0].get_offsets()), 333)
        with self.assertRaisesRegex(ValueError, "no column 'factor_9'"):
            parley.plot_scores(study, 9)

    def test_loadings(self):
        ax = parley.plot_loadings(study, factor=1, features=5)
        names = [t.get_text() for t in ax.get_yticklabels()]
        largest = max(rows(study.path / "model/loadings.csv"), key=lambda r: abs(float(r["factor_1"])))
        self.assertEqual(names[-1], f"{largest['feature']} ({largest['view']})")  # on top
        self.assertEqual(len(names), 5)
        with self.assertRaisesRegex(ValueError, "no factor 7"):
            parley.plot_loadings(study, factor=7)
        with self.assertRaisesRegex(ValueError, "no loadings"):
            parley.plot_loadings(regression)

    def test_variance(self):
        ax = parley.plot_variance(study)
        self.assertEqual(ax.images[0].get_array().shape, (6, 4))

    def test_coefficients(self):
        ax = parley.plot_coefficients(regression)
        self.assertEqual(len(ax.get_yticklabels()), len(regression.coefficients))
        with self.assertRaisesRegex(ValueError, "no coefficients"):
            parley.plot_coefficients(study)


if __name__ == "__main__":
    unittest.main()
