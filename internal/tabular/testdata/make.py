"""Makes the data sets beside this file: the same rows as CSV, as Stata's formats by pandas 1.5.3 (of Debian 12), and
as a SAS transport file by the few lines below, after SAS's TS-140. Days and levels of .dta and .xpt are theirs."""
import datetime, gzip, math, random, struct
import pandas as pd

random.seed(20)
n = 4000
born = [datetime.date(1930, 1, 1) + datetime.timedelta(days=random.randrange(20000)) for _ in range(n)]
rows = pd.DataFrame({
    "crp": [None if random.random() < .05 else round(math.exp(random.gauss(1, 1)), 3) for _ in range(n)],
    "age": [random.randrange(20, 95) for _ in range(n)],
    "dose": [round(random.uniform(-3, 3), 2) + 0.0 for _ in range(n)],
    "stage": [random.choice(["I", "II", "Großzellig"]) for _ in range(n)],
    "born": pd.to_datetime(born),
    "id": [f"p{i:04d}" for i in range(n)],
})
text = rows.copy()
text["born"] = text["born"].dt.strftime("%Y-%m-%d")
with gzip.GzipFile("rows.csv.gz", "wb", 9, mtime=0) as f:
    f.write(text[["id", "crp", "age", "dose", "stage", "born"]].to_csv(index=False).encode())


def stata(frame, version, name):
    frame = frame.copy()
    frame["stage"] = frame["stage"].astype("category")  # numbers with value labels
    frame.to_stata("/tmp/x.dta", version=version, write_index=False, convert_dates={"born": "td"},
                   variable_labels={"crp": "C-reactive protein, mg/l"}, time_stamp=datetime.datetime(2024, 1, 1))
    with gzip.GzipFile(name, "wb", 9, mtime=0) as f:
        f.write(open("/tmp/x.dta", "rb").read())


stata(rows, 118, "rows.dta.gz")
for version in (114, 117, 118, 119):
    few = rows.head(5).copy()
    if version < 118:
        few["stage"] = few["stage"].str.replace("ß", "ss", regex=False)
    few["born"] = pd.to_datetime(few["born"])
    few["note"] = "x" * 10
    if version > 114:
        few.loc[2, "note"] = "y" * 3000  # of any length
    stata(few, version, f"few{version}.dta.gz")


def ibm(x):
    if x is None or x != x:
        return b"." + bytes(7)
    if x == 0:
        return bytes(8)
    sign, x, e = (0x80 if x < 0 else 0), abs(x), 64
    while x >= 1:
        x, e = x / 16, e + 1
    while x < 1 / 16:
        x, e = x * 16, e - 1
    return bytes([sign | e]) + int(x * 2**56).to_bytes(7, "big")


names = ["id", "crp", "age", "dose", "stage", "born"]
width = {"id": 5, "stage": 11}
body, at = b"", 0
for i, name in enumerate(names):
    w = width.get(name, 8)
    form = b"DATE    " if name == "born" else b" " * 8
    body += struct.pack(">hhhh8s40s8shhh2s8shhi52s", 2 if name in width else 1, 0, w, i + 1, name.ljust(8).encode(), b" " * 40, form, 9, 0, 0,
                        b"  ", b" " * 8, 0, 0, at, bytes(52))
    at += w
stamp = b"01JAN24:00:00:00"
head = (b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!" + b"0" * 30).ljust(80) + (b"SAS     SAS     SASLIB  9.4     LINUX   " + b" " * 24 + stamp).ljust(80) + stamp.ljust(80)
head += (b"HEADER RECORD*******MEMBER  HEADER RECORD!!!!!!!000000000000000001600000000140").ljust(80)
head += (b"HEADER RECORD*******DSCRPTR HEADER RECORD!!!!!!!" + b"0" * 30).ljust(80) + (b"SAS     ROWS    SASDATA 9.4     LINUX   " + b" " * 24 + stamp).ljust(80) + stamp.ljust(80)
head += (b"HEADER RECORD*******NAMESTR HEADER RECORD!!!!!!!000000%04d" % len(names) + b"0" * 20).ljust(80)
out = head + body.ljust((len(body) + 79) // 80 * 80) + (b"HEADER RECORD*******OBS     HEADER RECORD!!!!!!!" + b"0" * 30).ljust(80)
obs = b""
for r in rows.itertuples():
    obs += r.id.encode().ljust(5) + ibm(r.crp) + ibm(r.age) + ibm(r.dose) + r.stage.encode().ljust(11) + ibm((r.born.date() - datetime.date(1960, 1, 1)).days)
out += obs + b" " * (-len(obs) % 80)
with gzip.GzipFile("rows.xpt.gz", "wb", 9, mtime=0) as f:
    f.write(out)
