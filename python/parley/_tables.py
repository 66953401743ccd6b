"""Tables as Parley writes and reads them."""

import csv
import gzip
from itertools import product

import pandas as pd

# What a missing cell may hold, in any case (docs/reference/data.md).
_MISSING = ["", *("".join(x) for word in ("na", "nan", "null") for x in product(*zip(word, word.upper())))]

# Columns that hold names. They are never numbers, and "NA" may be a name.
NAMES = ["id", "site", "view", "feature", "class", "reference", "unit", "sample", "group"]


def read_table(path, text=()):
    """Read a CSV file, plain or gzip, with ids and names as text.

    Columns in ``text`` are read as text too, but their empty cells, NA, NaN
    and null are missing.
    """
    path = str(path)
    with open(path, "rb") as f:
        packed = f.read(2) == b"\x1f\x8b"
    with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline="") as f:
        columns = [name.strip() for name in next(csv.reader(f, skipinitialspace=True), [])]
    if not columns:
        raise ValueError(f"{path} is empty: a table begins with the names of its columns")
    return pd.read_csv(
        path,
        names=columns,
        header=0,
        index_col=False,
        encoding="utf-8-sig",
        compression="gzip" if packed else None,
        skipinitialspace=True,
        dtype={c: str for c in columns if c in NAMES or c in text},
        keep_default_na=False,
        na_values={c: _MISSING for c in columns if c not in NAMES},
        float_precision="round_trip",
    )


def check_ids(frame, what):
    """Refuse a frame whose ids are not text, or stand twice in one site."""
    if "id" not in frame.columns:
        raise ValueError(f"{what} has no column 'id'")
    ids = frame["id"]
    if not ids.map(lambda x: isinstance(x, str)).all():
        raise TypeError(
            f"the ids of {what} are not text, and may have lost leading zeros\n"
            "  hint: read them with pandas.read_csv(..., dtype={'id': str})"
        )
    key = [c for c in ("site", "id") if c in frame.columns]
    twice = frame.duplicated(key)
    if twice.any():
        raise ValueError(f"{what} has more than one row for {ids[twice].iloc[0]!r}")
