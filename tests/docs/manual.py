"""The manual has a page and a manual page of section 3 for every public function, and all its links lead somewhere.

usage: manual.py SOURCE DESCRIPTION.json MAN3
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

source, description, man = (pathlib.Path(word) for word in sys.argv[1:4])
api = json.loads(description.read_text(encoding="utf-8"))
problems = []
with tempfile.TemporaryDirectory(prefix="weft-manual-") as folder:
    stage = [sys.executable, source / "ci/manual/stage.py", source, description, folder]
    done = subprocess.run(stage, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    problems += ["ci/manual/stage.py fails"] * (done.returncode != 0)
    for name, one in api["functions"].items():
        page = pathlib.Path(folder) / "docs/api" / f"{name}.md"
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        missing = [word for word in (f"{name}(", one["header"], one["library"], one["tier"], *re.findall(r"WEFT_ERR_\w+", one["text"]))
                   if word not in text]
        problems += [f"the page of {name} lacks {', '.join(missing)}"] if missing else []
# A contract that rests on another one, such as "As weft_stream_wait, for the recorded work only", has that one on its page.
SECTIONS = {"weft_work_wait": ["weft_stream_wait", "weft_work_test"], "weft_context_wait": ["weft_stream_wait"],
            "weft_threads_create": ["weft_threads_run"], "weft_graph_json_print": ["weft_graph_print", "weft_mesh_print"]}
for name, others in SECTIONS.items():
    text = (man / f"{name}.3").read_text(encoding="utf-8")
    problems += [f"{name}.3 lacks the contract of {other}" for other in others if f"CONTRACT OF {other.upper()}" not in text]
for name, one in api["functions"].items():
    page = man / f"{name}.3"
    text = page.read_text(encoding="utf-8").replace("\\-", "-") if page.exists() else ""
    missing = [word for word in (f"{name}(", f"weft/{one['header']}", f"-l{one['library']}", ".SH NAME") if word not in text]
    problems += [f"{name}.3 lacks {', '.join(missing)}"] if missing else []
    # Fields of structs that it takes: their types, and what they say.
    for struct in {word for argument in one["arguments"] for word in re.findall(r"\bweft_\w+", argument["type"])} & set(api["structs"]):
        fields = [field["name"] for field in api["structs"][struct]["fields"]
                  if not re.search(rf"^\.B .*\b{field['name']}\b", text, re.M)]
        problems += [f"{name}.3 lacks {', '.join(fields)} of {struct}"] if fields else []
text = (man / "weft_save.3").read_text(encoding="utf-8")
problems += [f"weft_save.3 lacks {word}" for word in (".SH STRUCT WEFT_SAVE_OPTIONS", "replace a checkpoint at the path", "0 is 5,000,000,000")
             if word not in text]
others = {path.stem for path in man.glob("*.3")} - set(api["functions"])
problems += [f"{name}.3 is of no function" for name in sorted(others)]
if shutil.which("groff"):
    done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", "-P-c", *sorted(man.glob("*.3"))],
                          capture_output=True, text=True, check=False)  # fmt: skip
    problems += [done.stderr] if done.stderr or done.returncode else []
print("\n".join(problems) or f"{len(api['functions'])} functions")
sys.exit(1 if problems or not api["functions"] else 0)
