# SPDX-License-Identifier: Apache-2.0
# Compares files of third-party writers, and third-party readers' values, with the output of
# `readers.t FILE SETTINGS`. Arguments: that program, the number of arrays, the seed. Prints TAP.
import csv, json, os, random, struct, subprocess, sys, tempfile

program, cases, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
random.seed(seed)
print("# seed %d (YOKE_TEST_SEED)" % seed)
count = 0


def ok(good, text):
    global count
    count += 1
    print("%sok %d - %s" % ("" if good else "not ", count, text))


def skip(text, why):
    global count
    count += 1
    print("ok %d - %s # SKIP %s" % (count, text, why))


# [(field, dtype, dims, bytes), ..] of all samples; for an error, its text
def read(path, settings=""):
    out = subprocess.run([program, path, settings], stdout=subprocess.PIPE).stdout.decode()
    rows = []
    for line in out.splitlines():
        if line.startswith("error "):
            rows.append(line[6:])
            continue
        name, dtype, dims, data = (line + " ").split(" ")[:4]
        rows.append((name, dtype, () if dims == "-" else tuple(int(x) for x in dims.split(",")), bytes.fromhex(data)))
    return rows


try:
    import numpy as np
except ImportError:
    np = None
try:
    from PIL import Image
except ImportError:
    Image = None

# dtypes of numpy, and the dtypes as which elements are read
DTYPES = {"b1": ("bool", "?"), "i1": ("i8", "i1"), "u1": ("u8", "u1"), "i2": ("i32", "<i4"), "u2": ("i32", "<i4"),
          "i4": ("i32", "<i4"), "u4": ("i64", "<i8"), "i8": ("i64", "<i8"), "f2": ("f16", "<f2"), "f4": ("f32", "<f4"),
          "f8": ("f64", "<f8")}


def random_array(rows=None):
    kind = rng.choice(list(DTYPES))
    shape = tuple(rng.integers(1, 6, size=rng.integers(1, 5)))
    if rows:
        shape = (rows,) + shape[1:]
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    raw = rng.integers(0, 2 if kind == "b1" else 256, size=size, dtype="u1").tobytes()
    a = np.frombuffer(raw, dtype=kind).reshape(shape)
    order = "FC"[rng.integers(0, 2)]
    return np.array(a, dtype="<>"[rng.integers(0, 2)] + kind, order=order), kind


def same_rows(rows, a, kind):
    name, to = DTYPES[kind]
    want = [x.astype(to).tobytes() for x in a]
    return [r[1:] for r in rows] == [(name, a.shape[1:], w) for w in want]


if np is None:
    skip(".npy, .npz, safetensors", "python3 has no numpy")
else:
    rng = np.random.default_rng(seed)
    good, k = True, 0
    while good and k < cases:
        a, kind = random_array()
        if kind[0] == "f":  # a NaN keeps its bits only if it is not converted
            a = np.nan_to_num(a)
        with open("x.npy", "wb") as f:
            np.lib.format.write_array(f, a, version=[(1, 0), (2, 0), (3, 0)][rng.integers(0, 3)])
        good = same_rows(read("x.npy"), a, kind)
        if not good:
            print("# %s %s %s" % (a.dtype, a.shape, a.flags.f_contiguous))
        k += 1
    ok(good, "%d arrays that numpy wrote, of all dtypes, orders and versions" % k)
    for save in (np.savez, np.savez_compressed):
        a, ka = random_array(7)
        b, kb = random_array(7)
        save("x.npz", first=np.nan_to_num(a), second=np.nan_to_num(b))
        rows = read("x.npz")
        if rows and "without libzip" in rows[0]:
            skip(save.__name__, rows[0])
            continue
        ok(same_rows(rows[0::2], np.nan_to_num(a), ka) and same_rows(rows[1::2], np.nan_to_num(b), kb) and
           rows[0][0] == "first" and rows[1][0] == "second", "numpy's " + save.__name__)
    rows = read("x.npz", "fields=second")
    ok("libzip" in rows[0] or same_rows(rows, np.nan_to_num(b), kb), "one array of an archive")
    objects = np.array([{}, []], dtype=object)
    np.save("o.npy", objects, allow_pickle=True)
    ok("o.npy" in read("o.npy")[0], "pickled objects are refused: " + str(read("o.npy")[0]))

# ---- csv, json ----

LETTERS = 'ab,"\n\r\t é;\'x'
good = True
for k in range(12):
    dialect = [dict(delimiter=","), dict(delimiter=",", lineterminator="\n"), dict(delimiter="\t"),
               dict(delimiter=",", quoting=csv.QUOTE_ALL)][k % 4]
    path = "t.tsv" if dialect["delimiter"] == "\t" else "t.csv"
    letters = LETTERS.replace("\r", "") if "lineterminator" in dialect else LETTERS  # an unquoted cell then
    table = [["".join(random.choice(letters) for _ in range(random.randrange(30))), repr(random.uniform(-1e9, 1e9)),
              random.choice(["red", "green", ""])] for _ in range(random.randrange(1, 50))]
    with open(path, "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f, **dialect)
        w.writerow(["text", "number", "kind"])
        w.writerows(table)
    with open(path, newline="", encoding="utf-8") as f:
        table = list(csv.reader(f, delimiter=dialect["delimiter"]))[1:]
    kinds = sorted({row[2] for row in table})
    rows = read(path, "columns=text:text,number:f64,kind:category")
    want = []
    for text, number, kind in table:
        want += [(text.encode(), (len(text.encode()),)), (struct.pack("<d", float(number)), ()),
                 (struct.pack("<i", kinds.index(kind)), ())]
    if [(r[3], r[2]) for r in rows if not isinstance(r, str)] != want:
        good = False
        print("# %s" % [r for r in rows if isinstance(r, str)])
ok(good, "tables that python's csv wrote, in each dialect")
texts = ["".join(random.choice(LETTERS + "\\/\u2028\U0001f600") for _ in range(random.randrange(60))) for _ in range(80)]
with open("t.jsonl", "w", encoding="utf-8") as f:
    for i, text in enumerate(texts):
        f.write(json.dumps({"n": [i, {"text": "other"}], "text": text, "z": None}, ensure_ascii=bool(i % 2)) + "\n")
ok([r[3] for r in read("t.jsonl", "field=text")] == [t.encode() for t in texts], "lines that python's json wrote")

# ---- images ----

if np is None or Image is None:
    skip("images", "python3 has no numpy or no Pillow")
else:
    def picture(width, height):
        y, x = np.mgrid[0:height, 0:width]
        a = np.stack([127 + 100 * np.sin((x * (c + 1) + y * 2) * 0.05 + c) for c in range(3)], -1)
        return Image.fromarray(np.clip(a + rng.integers(-8, 9, a.shape), 0, 255).astype("u1"), "RGB")

    def save(name, image, **more):
        os.makedirs("f/" + name, exist_ok=True)
        path = "f/%s/%s.%s" % (name, name, more.pop("end"))
        image.save(path, **more)
        return path

    im = picture(90, 70)
    files = [save("a", im, end="png"), save("b", im, end="jpg", quality=90), save("c", im, end="jpg", progressive=True),
             save("d", im.convert("L"), end="jpg"), save("e", im.convert("P"), end="png"),
             save("g", im.convert("L"), end="png"), save("h", im.convert("1"), end="png"),
             save("i", im.convert("RGBA"), end="png"), save("j", im, end="jpg", subsampling=0)]
    for size, box, what in ((None, None, "as they are"), ((60, 40), None, "to 60 x 40"), ((123, 111), None, "to 123 x 111")):
        to = size or im.size
        rows = read("f", "crop=none size=%dx%d" % (to[1], to[0]))
        errors = [r for r in rows if isinstance(r, str)]
        if any("built without" in e for e in errors):
            skip("images " + what, errors[0])
            continue
        worst = 0
        for i, path in enumerate(files):
            with Image.open(path) as other:
                want = other.convert("RGB").resize(to, Image.BILINEAR) if size else other.convert("RGB")
            want = np.asarray(want, "f8").transpose(2, 0, 1)
            got = np.frombuffer(rows[2 * i][3], "<f4").reshape(want.shape) * 255.0
            worst = max(worst, np.abs(got - want).max())
        ok(not errors and worst <= 1.01, "%d images %s: within %.2f of Pillow's 255" % (len(files), what, worst))

print("1..%d" % count)
