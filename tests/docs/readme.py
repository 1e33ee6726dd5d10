"""README.md and docs/documents.md say what is so: C code stands in an example, and commands and Python code run.

usage: readme.py SOURCE WEFT PROGRAMS PACKAGE

PROGRAMS is the folder of the built examples.  PACKAGE is the folder of the built Python package, or - without one.

Every command and block of README.md is run, or has a line in PARTS with the part that is run here.  What was left out is
printed.  Commands run in a folder that has a checkpoint of Llama's names, `Llama-3-8B`.  Every figure of its table is in
the section that the row links to.
"""
import importlib.util
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

source, weft, programs = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
package = None if sys.argv[4] == "-" else sys.argv[4]
problems, left_out = [], []
ran = 0

# What is run in place of a command that builds, installs or tests the tree, and what that leaves out.
PARTS = {
    "pip install .": ("true", "needs pip's build tools; ci/lanes/packages and ci/lanes/python install it"),
    "ci/demo.sh": (f"bash {source}/ci/demo.sh --installed", "its build"),
    "ci/test.sh": (f"bash -n {source}/ci/test.sh", "all but its syntax: this test is a part of it"),
}


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def stands_in(block, text):
    """Do the block's lines follow each other in the text?"""
    return "\n".join(lines_of(block)) in "\n".join(lines_of(text))


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)


def environment():
    path = os.pathsep.join((str(weft.parent), str(programs), os.environ["PATH"]))
    packages = [one for one in (package, os.environ.get("PYTHONPATH")) if one]
    return os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(packages)}


def run(words, title, folder):
    global ran
    ran += 1
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, env=environment(), cwd=folder)
    if done.returncode != 0:
        problems.append(f"{title}\nends with {done.returncode}:\n{done.stdout}{done.stderr}")


def command(line, folder):
    line = line.split("  #")[0].strip()
    if line.startswith("python ") and package is None:
        left_out.append(f"{line}: its Python; the package is not built")
        line = line.replace("python -m weft", "weft")
    elif line.startswith("python "):
        line = line.replace("python", sys.executable, 1)
    if line.startswith("cc ") and subprocess.run(["pkg-config", "--exists", "weft"]).returncode != 0:
        left_out.append(f"{line}: weft is not installed here; ci/lanes/packages runs it")
        line = f"ln -s {programs}/{line.split()[2]} ."
    if line in PARTS:
        left_out.append(f"{line}: {PARTS[line][1]}")
        line = PARTS[line][0]
    run(["bash", "-euo", "pipefail", "-c", line], f"$ {line}", folder)


def python(block, folder):
    """Two ranks run the block.  What it imports may be missing; then its syntax is checked."""
    compile(block, "README.md", "exec")
    wanted = sorted(set(re.findall(r"^import (\w+)", block, re.M)))
    missing = [name for name in wanted if name != "weft" and importlib.util.find_spec(name) is None]
    if package is None:
        missing.append("the Python package of weft")
    if missing:
        left_out.append(f"the block with {', '.join(wanted)}, all but its syntax: without {', '.join(missing)}")
        return
    if "torch" in wanted and not list(pathlib.Path(package).glob("weft-*.dist-info")):
        # PyTorch finds an installed package by itself, but not one in a build tree (docs/python.md).
        block = "import weft.torch\n" + block
    (folder / "block.py").write_text(block)
    run([weft, "run", "-n", "2", sys.executable, "block.py"], block, folder)


def checkpoint(folder):
    """A folder as Hugging Face's, with the names and shapes of a small Llama."""
    header, at = {}, 0
    for layer in range(2):
        for name, shape in (("self_attn.q_proj", [64, 64]), ("self_attn.o_proj", [64, 64]), ("mlp.up_proj", [128, 64]),
                            ("mlp.down_proj", [64, 128]), ("input_layernorm", [64])):  # fmt: skip
            size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[f"model.layers.{layer}.{name}.weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            at += size
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(i * i % 251 for i in range(at)))


def figures(text):
    """The figures of a text that have a unit of time: numbers as written, with that unit."""
    return re.findall(r"([\d.]*\d) (us|ms|s)\b", text)


def section(link):
    """The section of a document that a link leads to."""
    path, anchor = link.split("#")
    for part in re.split(r"^## ", (source / path).read_text(), flags=re.M)[1:]:
        if re.sub(r"[^\w -]", "", part.partition("\n")[0]).lower().replace(" ", "-") == anchor:
            return part
    return ""


def check_figures(row):
    """Each figure of a row stands in the section that the row links to, in its unit or in a thousandth of it."""
    link = re.search(r"\((docs/\S+#\S+)\)", row)
    known = [float(number) for number in re.findall(r"\d+\.\d+|\d+", section(link[1]))]
    for number, unit in figures(row):
        last = 10.0 ** -len(number.partition(".")[2])  # what the last digit counts
        if not any(abs(one / times - float(number)) <= last / 2 for one in known for times in (1, 1000)):
            problems.append(f"{link[1]} does not have {number} {unit} of README.md")


examples = [path.read_text() for path in (source / "examples").rglob("*.c")]
readme = (source / "README.md").read_text()
words = len(readme.split())
if not 500 <= words <= 650:
    problems.append(f"README.md has {words} words, wanted are 500 to 650")

rows = [row for row in readme.splitlines() if row.startswith("|") and figures(row)]
if len(rows) < 5:
    problems.append("README.md has no table of figures")
for row in rows:
    check_figures(row)

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    checkpoint(folder / "Llama-3-8B")
    (folder / "examples").symlink_to(source / "examples")
    for text in (readme, (source / "docs/documents.md").read_text()):
        for block in blocks(text, "c"):
            if not any(stands_in(block, example) for example in examples):
                problems.append(f"no example holds these lines:\n{block}")
        for line in re.findall(r"^\$ (.+)$", "\n".join(blocks(text, "console")), re.M):
            command(line, folder)
    for line in re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```", "", readme, flags=re.S | re.M), re.M):
        command(line, folder)
    for block in blocks(readme, "python"):
        python(block, folder)
    drawn = re.search(r"^`(weft plan .*?--svg move.svg)`", readme, re.S | re.M)
    command(" ".join(drawn[1].split()), folder)
    if (folder / "move.svg").read_bytes() != (source / "docs/move.svg").read_bytes():
        problems.append("the picture of README.md is not what its command draws")
    named = re.findall(r"\[`((?:bench|ci)/\S+?)[` ]|`(?:GPU_PARTS=\S+ |torchrun .*?)((?:bench|ci)/\S+?)`", readme)
    for path in {first or second for first, second in named}:
        if not (source / path).exists():
            problems.append(f"README.md names {path}, which is not there")

for line in left_out:
    print("left out:", line)
print("\n".join(problems) or f"README.md: {ran} commands and blocks run, {words} words")
sys.exit(1 if problems else 0)
