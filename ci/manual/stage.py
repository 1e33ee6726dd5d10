#!/usr/bin/env python3
"""Put together the Markdown files of the manual: stage.py SOURCE DESCRIPTION.json OUT

OUT/docs has the documents, the pages of the API (api/pages.py), and a page for each other file of the project that a
document links.  OUT/mkdocs.yml names the pages of the API, too.  Links are rewritten to these pages.  A link that leads
nowhere, a document that mkdocs.yml does not list, and a public function without a page are errors."""
import os
import pathlib
import posixpath
import re
import shutil
import sys

source, description, out = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
sys.path.insert(0, str(source / "api"))
import contract  # noqa: E402
import pages  # noqa: E402

FENCE = re.compile(r"^```(\w*) +(\S+)$", re.M)
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]*)(#[^)\s]*)?(\))")
FUNCTION = re.compile(r"(?<![\[`\w])`(weft_\w+)(?:\(\))?`(?!\]|`)")
HEADING = re.compile(r"^(#{1,6}) (.*?)(?: *\{ *#([\w.-]+) *\})?$")
LANGUAGES = {".c": "c", ".h": "c", ".hpp": "cpp", ".in": "cpp", ".py": "python", ".sh": "sh", ".cmake": "cmake", ".txt": "cmake"}
TEXTS = {".c", ".h", ".py", ".sh", ".md", ".graph", ".style", ".layout", ".rules", ".def", ".txt"}


def blocks(text):
    """(is code, lines) of a document: fenced and indented blocks are code."""
    made, fenced, before = [], False, ""
    for line in text.split("\n"):
        opens = line.lstrip().startswith("```")
        code = fenced or opens or (line.startswith("    ") and (not before.strip() or (made and made[-1][0])))
        if opens:
            fenced = not fenced
        if not made or made[-1][0] != code:
            made.append((code, []))
        made[-1][1].append(line)
        before = line
    return [(code, "\n".join(lines)) for code, lines in made]


def slug(text):
    """The anchor of a heading, as GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def front_matter(page):
    """What the site's search and its frame are told of a page: a document answers more questions than a source does."""
    boost = 0.1 if page.startswith("source/") else 0.5 if page.startswith(("history/", "abi.", "api", "evidence.")) else 4
    return f"---\nsearch: {{boost: {boost}}}\n{'hide: [navigation, toc]' + chr(10) if page == 'index.md' else ''}---\n"


class Site:
    def __init__(self):
        self.api = contract.load(description)
        self.problems, self.waiting, self.texts = [], [], {}

    def page_of(self, path):
        """The page, relative to the site, of a file of the project; it will be written."""
        path = posixpath.normpath(path)
        name = posixpath.basename(path)
        if path.startswith("docs/") and (source / path).is_file():
            return path[len("docs/"):]
        if re.fullmatch(r"\w+/include/weft/\w+\.h", path) and name in self.api["headers"]:
            return f"api/{name}.md"
        full = source / path
        if path == "api":
            return "api/index.md"
        if full.is_dir():
            page = f"source/{path}/index.md"
        elif path.endswith(".md"):
            page = f"source/{path[:-len('.md')].replace('README', 'about')}.md"
        else:
            page = f"source/{path}.md"
        self.waiting.append((path, page))
        return page

    def rewrite(self, path, page, text):
        """The text of the document PATH as it stands on PAGE."""
        made = []
        for code, block in blocks(text):
            if code:
                made.append(FENCE.sub(r'```\1 title="\2"', block))
                continue
            block = LINK.sub(lambda found: self.link(path, page, found), block)
            block = FUNCTION.sub(lambda found: self.function(page, found), block)
            # A list begins after an empty line in this Markdown.
            block = re.sub(r"^((?![-*|#]|\d+\. |\s).+)\n(?=- |\d+\. )", r"\1\n\n", block, flags=re.M)
            made.append(block)
        return "\n".join(made)

    def relative(self, page, other):
        return posixpath.relpath(other, posixpath.dirname(page) or ".")

    def link(self, path, page, found):
        before, target, anchor, after = found[1], found[2], found[3] or "", found[4]
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        full = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if not (source / full).exists():
            self.problems.append(f"{path}: the link to {target} leads nowhere")
            return found[0]
        if before == f"[{posixpath.basename(full)}](" and full.endswith(".md"):
            before = f"[{self.title(full)}]("
        return before + self.relative(page, self.page_of(full)) + anchor + after

    @staticmethod
    def title(path):
        """The first heading of a document, which a site shows instead of the name of its file."""
        return (source / path).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")

    def function(self, page, found):
        if found[1] not in self.api["functions"]:
            return found[0]
        return f"[{found[0]}]({self.relative(page, 'api/' + found[1] + '.md')})"

    def add(self, path, page):
        full = source / path
        if full.is_dir():
            inside = sorted(one for one in full.iterdir() if one.suffix in TEXTS or one.is_dir())
            self.texts[page] = f"# {path}\n\n" + "\n".join(
                f"- [{one.name}]({self.relative(page, self.page_of(one.relative_to(source).as_posix()))})" for one in inside) + "\n"
        elif path.endswith(".md"):
            self.texts[page] = self.rewrite(path, page, full.read_text(encoding="utf-8"))
        elif full.suffix == ".svg":
            self.texts[page] = full.read_text(encoding="utf-8")
        else:
            language = LANGUAGES.get(full.suffix, "text")
            self.texts[page] = f"# {path}\n\n````{language}\n{full.read_text(encoding='utf-8')}````\n"

    def stage(self):
        documents = sorted((source / "docs").rglob("*.md")) + sorted((source / "docs").rglob("*.svg"))
        for path in documents:
            name = path.relative_to(source).as_posix()
            self.add(name, self.page_of(name))
        for path in sorted((source / "examples").rglob("*.[ch]")):
            self.page_of(path.relative_to(source).as_posix())
        folder = out / "docs"
        shutil.rmtree(folder, ignore_errors=True)
        pages.write(self.api, source / "examples", folder / "api")
        for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md"):
            self.page_of(name)
        while self.waiting:
            path, page = self.waiting.pop()
            if page not in self.texts:
                self.add(path, page)
        for page, text in self.texts.items():
            if page.endswith(".md"):
                text = front_matter(page) + text
            (folder / page).parent.mkdir(parents=True, exist_ok=True)
            (folder / page).write_text(text, encoding="utf-8")
        for name in ("style.css", "iframe-worker.js"):
            shutil.copy(source / "ci/manual" / name, folder / name)

    def configure(self):
        text = (source / "ci/manual/mkdocs.yml").read_text(encoding="utf-8")
        listed = set(re.findall(r"([\w/.-]+\.md)", text))
        headers = "".join(f"          - {name}: api/{name}.md\n" for name in sorted(self.api["headers"]))
        text = text.replace("          - HEADERS\n", headers).replace("VERSION", self.api["version"])
        (out / "mkdocs.yml").write_text(text, encoding="utf-8")
        for page in self.texts:
            if page.endswith(".md") and not page.startswith("source/") and page not in listed:
                self.problems.append(f"ci/manual/mkdocs.yml does not list {page}")

    def check(self):
        """Every link of every page leads to a file, and to a heading of it."""
        folder, anchors = out / "docs", {}
        for path in folder.rglob("*.md"):
            seen = anchors[path.relative_to(folder).as_posix()] = {}
            for code, block in blocks(path.read_text(encoding="utf-8")):
                for line in () if code else block.split("\n"):
                    heading = HEADING.match(line)
                    if heading:
                        name = heading[3] or slug(heading[2])
                        seen[name] = seen.get(name, -1) + 1
                        if seen[name]:
                            seen[f"{name}_{seen[name]}"] = 0
        count = 0
        for page in anchors:
            for code, block in blocks((folder / page).read_text(encoding="utf-8")):
                for found in () if code else LINK.finditer(re.sub(r"(?<!\[)`[^`\n]*`", "", block)):
                    target, anchor = found[2], (found[3] or "")[1:]
                    if "://" in target or target.startswith("mailto:"):
                        continue
                    count += 1
                    other = posixpath.normpath(posixpath.join(posixpath.dirname(page), target)) if target else page
                    if not (folder / other).is_file():
                        self.problems.append(f"{page}: the link to {target} leads nowhere")
                    elif anchor and other in anchors and anchor not in anchors[other]:
                        self.problems.append(f"{page}: {other} has no heading #{anchor}")
        for name in self.api["functions"]:
            if f"api/{name}.md" not in anchors:
                self.problems.append(f"{name} has no page")
        return len(anchors), count


def main():
    site = Site()
    os.makedirs(out, exist_ok=True)
    site.stage()
    site.configure()
    count, links = site.check()
    print("\n".join(site.problems))
    print(f"{count} pages, {links} links, {len(site.api['functions'])} functions")
    sys.exit(1 if site.problems else 0)


if __name__ == "__main__":
    main()
