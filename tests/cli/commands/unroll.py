#!/usr/bin/env python3
"""Write a graph with its repeated lines written out: unroll.py GRAPH FIRST:LAST...

Lines with the clause xN that follow one another are a block.  x:y says that x of a block is y of the
block before; in a block that uses a name with d, such as dy:dx, the blocks run backwards."""
import re
import sys

CALL = re.compile(r"([^=]*)= ([\w.]+)\((.*?)\)((?: ;.*)?)$")
PARAM = re.compile(r"(?:param|input|output) ([\w.]+)")
TENSOR = re.compile(r'(?<![\w.\[="])[A-Za-z_][\w.]*(?=\s*(?:,|$))')


class Graph:
    def __init__(self, path, chains):
        with open(path, encoding="utf-8") as file:
            lines = [re.sub(r"\s*#.*", "", line.rstrip("\n")) for line in file]
        self.lines = [line for line in lines if line]
        self.chains = chains
        self.count = max(int(found) for line in self.lines for found in re.findall("; x([0-9]+)", line))
        self.own = {name for line in self.lines if self.is_repeated(line) for name in self.results(line)}

    def is_repeated(self, line):
        return f" ; x{self.count}" in line

    @staticmethod
    def results(line):
        found = PARAM.match(line)
        return [found.group(1)] if found else re.findall(r"[\w.]+", CALL.match(line).group(1))

    def name(self, name, block):
        if block is None:  # outside of the blocks: a result of the one that ran last
            return f"{name}.{0 if name.startswith('d') else self.count - 1}" if name in self.own else name
        if name in self.chains:
            before = block + 1 if name.startswith("d") else block - 1
            return f"{self.chains[name]}.{before}" if 0 <= before < self.count else name
        return f"{name}.{block}" if name in self.own else name

    def write(self, line, block):
        line = line.replace(f" ; x{self.count}", "")
        found = CALL.match(line)
        if found:
            left = re.sub(r"[\w.]+", lambda m: self.name(m.group(0), block), found.group(1))
            inside = TENSOR.sub(lambda m: self.name(m.group(0), block), found.group(3))
            line = f"{left}= {found.group(2)}({inside}){found.group(4)}"
        elif PARAM.match(line):
            word, name, *rest = line.split(None, 2)
            line = " ".join([word, self.name(name, block), *rest])
        print(line)

    def write_all(self):
        at = 0
        while at < len(self.lines):
            end = at
            while end < len(self.lines) and self.is_repeated(self.lines[end]) == self.is_repeated(self.lines[at]):
                end += 1
            order = range(self.count) if self.is_repeated(self.lines[at]) else [None]
            if any(re.search(rf"\b{name}\b", line) for line in self.lines[at:end]
                   for name in self.chains if name.startswith("d")):  # fmt: skip
                order = reversed(order)
            for block in order:
                for line in self.lines[at:end]:
                    self.write(line, block)
            at = end


Graph(sys.argv[1], dict(one.split(":") for one in sys.argv[2:])).write_all()
