"""Data folders from data frames."""

import os
import re
import tempfile
from pathlib import Path

import pandas as pd

from ._tables import check_ids

_VIEW = re.compile(r"[A-Za-z0-9_-]+\Z")


def write_data(folder, subjects, views):
    """Write data frames as the data folder of one site, and return its path.

    folder    folder to make; one that exists is not replaced
    subjects  data frame with a column ``id`` of text, once for each subject,
              and columns that describe them, such as outcomes
    views     mapping of names to data frames with ``id`` and the features

    Numbers are written so that they read back as the same, truth values as
    TRUE and FALSE, days and times as ISO 8601; what is missing is an empty
    cell. Nothing is left behind if something cannot be written.
    """
    folder = Path(folder)
    if folder.exists():
        raise FileExistsError(f"{folder} exists already, and was left as it is")
    for name in views:
        if not _VIEW.match(name):
            raise ValueError(f"{name!r} cannot be the name of a view\n  hint: letters, digits, - and _")
    frames = {"subjects.csv": (subjects, "subjects")}
    frames.update({f"view_{name}.csv": (frame, f"view {name}") for name, frame in views.items()})
    texts = {file: _text(frame, what) for file, (frame, what) in frames.items()}
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for file, text in texts.items():
            (part / file).write_text(text, encoding="utf-8", newline="")
        os.rename(part, folder)
    except BaseException:
        for file in part.iterdir():
            file.unlink()
        part.rmdir()
        raise
    return folder


def _text(frame, what):
    check_ids(frame, what)
    columns = ["id", *(c for c in frame.columns if c != "id")]
    return pd.DataFrame({c: _column(c, frame[c], what) for c in columns}).to_csv(index=False, lineterminator="\n")


def _column(name, column, what):
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if pd.api.types.is_bool_dtype(column):
        return column.map({True: "TRUE", False: "FALSE"})
    if pd.api.types.is_datetime64_any_dtype(column):
        days = column.dropna()
        whole = (days == days.dt.normalize()).all()
        return column.dt.strftime("%Y-%m-%d" if whole else "%Y-%m-%dT%H:%M:%S")
    if pd.api.types.is_numeric_dtype(column):
        if column.isin([float("inf"), float("-inf")]).any():
            raise ValueError(f"{what}: {name!r} holds an infinite number")
        if pd.api.types.is_integer_dtype(column):
            return column.map(str, na_action="ignore")
        return column.map(lambda x: None if pd.isna(x) else repr(float(x)))
    for cell in column.dropna():
        if not isinstance(cell, (str, int, float)):
            raise TypeError(f"{what}: {name!r} holds a {type(cell).__name__}, which is neither number nor text")
    return column
