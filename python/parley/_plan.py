"""Plans from data frames."""

import json
import re
from pathlib import Path

import pandas as pd

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
# Plain words that YAML may read as something other than text.
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}


def write_plan(path, name, sites, views, method, privacy, ranges=None, **more):
    """Write a plan for data frames.

    path     file to write; a file that exists is not replaced
    name     of the study: small letters, digits and hyphens
    sites    names of the sites; or a mapping of them to data folders, which
             becomes ``local``, with paths that are relative to the plan
    views    mapping of names to data frames, whose columns (but ``id``)
             become features, or to lists of features as a plan has them
    method   mapping, such as {"name": "factors", "latent": 3}
    privacy  mapping; has no default, as in a plan
    ranges   {feature: (low, high)}, publicly known; never taken from the data
    more     other keys of a plan: question, seed, subjects, local …

    A column of numbers becomes a number, one of text or booleans a category.
    In a private study levels are public facts too, so that its categories
    must be of pandas' type Categorical, with all levels declared.
    ``parley plan check`` says whether the plan holds.
    """
    text = plan_text(name, sites, views, method, privacy, ranges, **more)
    with open(path, "x", encoding="utf-8", newline="\n") as f:
        f.write(text)
    return Path(path)


def plan_text(name, sites, views, method, privacy, ranges=None, **more):
    """The text that write_plan writes."""
    ranges = dict(ranges or {})
    private = privacy.get("protection") == "differential"
    plan = {"parley": 1, "name": name}
    plan.update({k: more.pop(k) for k in ("question", "seed") if k in more})
    plan["sites"] = list(sites)
    plan["views"] = [
        {"name": view, "features": _features(frame, ranges, private)} for view, frame in views.items()
    ]
    if ranges:
        raise ValueError(f"there is no feature {next(iter(ranges))!r}, whose range was given")
    if isinstance(sites, dict):
        if "local" in more:
            raise ValueError("give the data either by sites or by local")
        more["local"] = {"sites": {site: Path(folder).as_posix() for site, folder in sites.items()}}
    local = more.pop("local", None)
    plan.update(more, method=method, privacy=privacy)
    if local is not None:
        plan["local"] = local
    return "\n".join(_block(plan)) + "\n"


def _features(view, ranges, private):
    features = []
    if not isinstance(view, pd.DataFrame):
        described = [f if isinstance(f, dict) else {"name": f} for f in view]
    else:
        described = [_feature(view[c], private) for c in view.columns if c != "id"]
    for feature in described:
        if feature["name"] in ranges:
            feature = {**feature, "range": [float(x) for x in ranges.pop(feature["name"])]}
        features.append(feature if len(feature) > 1 else feature["name"])
    if not features:
        raise ValueError("a view has no features")
    return features


def _feature(column, private):
    name = str(column.name)
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = column.cat.categories
    elif pd.api.types.is_bool_dtype(column.dtype):
        levels = [False, True]
    elif pd.api.types.is_numeric_dtype(column.dtype):
        return {"name": name}
    elif private:
        raise ValueError(
            f"{name!r} is text, and its levels would be taken from the data that are to be protected\n"
            "  hint: declare them: frame[column] = pandas.Categorical(frame[column], categories=[...])"
        )
    elif not pd.api.types.is_object_dtype(column.dtype) and not pd.api.types.is_string_dtype(column.dtype):
        raise TypeError(f"{name!r} has type {column.dtype}, and is neither number nor category")
    else:
        levels = sorted(set(column.dropna().map(str)))
    return {"name": name, "kind": "category", "levels": [str(x) for x in levels]}


def _scalar(x):
    if isinstance(x, str):
        return x if _PLAIN.match(x) and x.lower() not in _WORDS else json.dumps(x, ensure_ascii=False)
    if hasattr(x, "item"):  # a number of numpy
        x = x.item()
    return json.dumps(x, allow_nan=False)


def _flow(x):
    if isinstance(x, dict):
        return "{" + ", ".join(f"{_scalar(str(k))}: {_flow(v)}" for k, v in x.items()) + "}"
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(map(_flow, x)) + "]"
    return _scalar(x)


def _block(mapping, indent=""):
    """Lines of YAML: nested mappings and lists of mappings in blocks."""
    for key, value in mapping.items():
        head = f"{indent}{_scalar(str(key))}:"
        if isinstance(value, dict) and value:
            yield head
            yield from _block(value, indent + "  ")
        elif isinstance(value, (list, tuple)) and any(isinstance(x, dict) for x in value):
            yield head
            for item in value:
                if isinstance(item, dict) and any(isinstance(v, (list, tuple)) for v in item.values()):
                    lines = list(_block(item, indent + "    "))
                    yield f"{indent}  - {lines[0].lstrip()}"
                    yield from lines[1:]
                else:
                    yield f"{indent}  - {_flow(item)}"
        else:
            yield f"{head} {_flow(value)}"
