#!/usr/bin/env python3
"""Does every internal link of a built site lead to a file and to an element of it, and does no page need a server?

links.py SITE"""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.names.update(given[key] for key in ("id", "name") if given.get(key))
        link = given.get("href") if tag in ("a", "link") else given.get("src")
        if link:
            self.links.append((link, tag != "a" and given.get("rel") != "canonical"))


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    problems, count = set(), 0
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        for link, loads in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if loads and parts.scheme != "data":
                    problems.add(f"{path.relative_to(site)} loads {link}")
                continue
            count += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                problems.add(f"{path.relative_to(site)}: {link} leads nowhere")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].names | {"__toc"}:
                problems.add(f"{path.relative_to(site)}: {link}: no such element")
    print("\n".join(sorted(problems)))
    print(f"{len(pages)} pages, {count} links")
    sys.exit(1 if problems or not pages else 0)


if __name__ == "__main__":
    main()
