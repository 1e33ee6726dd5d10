"""Decode Perfetto traces by field numbers, without a protobuf package.

    trace = pftrace.read("all.pftrace")
    trace.slices, trace.instants, trace.counters, trace.tracks, trace.flows

read() fails on bytes that are not whole packets, on slices that do not nest, on times that go back
on a track, on an end without a begin and on a number that was not interned.
"""
import collections


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & (1 << 64) - 1, at
        assert shift < 70, f"byte {at}: a number has more than 10 bytes"


def fields(data):
    """(number, value) of each field; bytes for texts and messages."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise AssertionError(f"field {key >> 3} has wire type {key & 7}")
        assert at <= len(data), f"field {key >> 3} ends after its message"
        yield key >> 3, value


def table(data):
    found = collections.defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


def signed(value):
    return value - (1 << 64) if value >> 63 else value


class Slice:
    def __init__(self, **kinds):
        self.__dict__.update(kinds)

    def __repr__(self):
        return f"{self.name} [{self.begin}, {self.end}] {self.notes}"


class Trace:
    def __init__(self):
        self.tracks = {}        # uuid -> {name, parent, pid, is_counter}
        self.slices = []
        self.instants = []
        self.counters = collections.defaultdict(list)  # uuid -> [(time, value)]
        self.clocks = []        # snapshots: {clock: time}
        self.open = collections.defaultdict(list)
        self.last = {}
        self.interned = collections.defaultdict(dict)  # sequence -> {(field, number): text}
        self.cleared = set()
        self.restarts = 0       # of sequences, also their beginnings

    def path(self, uuid):
        """("rank 0 (...)", "host calls (...)")"""
        track = self.tracks[uuid]
        return (self.path(track["parent"]) if track["parent"] else ()) + (track["name"],)

    def flows(self):
        """flow -> events that have it, in order of time"""
        found = collections.defaultdict(list)
        for event in self.slices + self.instants:
            for flow in event.flows:
                found[flow].append(event)
        return found

    def add_track(self, data):
        t = table(data)
        name = t[2][0].decode() if t[2] else ""
        pid = 0
        if t[3]:
            process = table(t[3][0])
            pid, name = process[1][0], process[6][0].decode()
        track = {"name": name, "parent": t[5][0] if t[5] else 0, "pid": pid,
                 "is_counter": bool(t[8])}
        before = self.tracks.get(t[1][0], track)  # only its name may change
        assert {**before, "name": ""} == {**track, "name": ""}, (before, track)
        self.tracks[t[1][0]] = track

    def note(self, texts, data):
        n = table(data)
        name = texts[3, n[1][0]] if n[1] else n[10][0].decode()
        if n[17]:
            return name, texts[29, n[17][0]]
        if n[6]:
            return name, n[6][0].decode()
        if n[4]:
            return name, signed(n[4][0])
        return name, n[3][0]

    def add_event(self, time, texts, data):
        e = table(data)
        kind, uuid = e[9][0], e[11][0]
        assert uuid in self.tracks, f"track {uuid} is not described"
        assert time >= self.last.get(uuid, 0), f"time goes back on {self.path(uuid)}"
        self.last[uuid] = time
        notes = dict(self.note(texts, n) for n in e[4])
        name = texts[2, e[10][0]] if e[10] else e[23][0].decode() if e[23] else None
        category = texts[1, e[3][0]] if e[3] else None
        if kind == 4:
            assert self.tracks[uuid]["is_counter"]
            self.counters[uuid].append((time, e[30][0]))
            return
        assert not self.tracks[uuid]["is_counter"]
        if kind == 2:
            assert self.open[uuid], f"an end without a begin on {self.path(uuid)}"
            slice_ = self.open[uuid].pop()
            slice_.end = time
            slice_.notes.update(notes)
            slice_.flows += e[47] + e[48]
            slice_.ends_flow = bool(e[48])
            return
        event = Slice(name=name, category=category, track=uuid, begin=time, end=None, notes=notes,
                      flows=e[47] + e[48], ends_flow=False, depth=len(self.open[uuid]),
                      parent=self.open[uuid][-1] if self.open[uuid] else None)
        if kind == 3:
            self.instants.append(event)
        else:
            assert kind == 1
            self.slices.append(event)
            self.open[uuid].append(event)

    def add_packet(self, data):
        p = table(data)
        sequence = p[10][0]
        flags = p[13][0] if p[13] else 0
        if flags & 1:
            self.cleared.add(sequence)
            self.restarts += 1
            self.interned[sequence] = {}
        if flags & 2:
            assert sequence in self.cleared, "a packet needs a state that was never begun"
        for interned in p[12]:
            for field, entry in fields(interned):
                t = table(entry)
                self.interned[sequence][field, t[1][0]] = t[2][0].decode()
        for clocks in p[6]:
            self.clocks.append({c[1][0]: c[2][0]
                                for c in (table(v) for n, v in fields(clocks) if n == 1)})
        for track in p[60]:
            self.add_track(track)
        for event in p[11]:
            self.add_event(p[8][0], self.interned[sequence], event)


def read(path, complete=True):
    data = open(path, "rb").read()
    trace = Trace()
    for number, packet in fields(data):
        assert number == 1
        trace.add_packet(packet)
    if complete:
        assert not any(trace.open.values()), "a slice has no end"
        for s in trace.slices:
            assert s.parent is None or s.parent.end >= s.end
    return trace
