"""A microbatch of a dense model with flash attention as a graph for `weft step`: tensor parallel by sequence, no
recompute, and optimizer states that the data-parallel ranks share.

The gradients are reduced, and the parameters gathered, once a step and beside nothing.  Attention is one line with the
operations of the causal half.  Positions take one pass over the queries.
"""
from megatron import FREE, Graph

WHOLE, PART = "to S(1),R", "to S(1),S(0)"


def weights(row):
    """Name, shape, dimension that the axis tp splits (None: it has all), and is it one of every layer?"""
    h, f, v, kv = row.hidden, row.ffn, row.vocabulary, 2 * row.groups * (row.hidden // row.heads)
    found = [("emb", (v, h), 0, False), ("head", (v, h), 0, False), ("gf", (h,), None, False),
             ("g1", (h,), None, True), ("g2", (h,), None, True), ("wq", (h, h), 0, True), ("wkv", (kv, h), 0, True),
             ("wo", (h, h), 1, True), ("w1", (f, h), 0, True), ("w2", (h, f), 1, True)]
    return found + [("w3", (f, h), 0, True)] if row.template == "gated" else found


def norm(g, layer, source, number):
    g.add(f"n{number}s, r{number} = rms_norm({source}, g{number}, dims=[-1])", layer)
    g.add(f"n{number} = move(n{number}s)", WHOLE, layer)


def shared(row, dim):
    """The placements of a gradient and of states that the data-parallel ranks share."""
    return {None: "S(0),R", 0: f"SS(0,{row.tp}),S(0)", 1: "S(0),S(1)"}[dim]


def weight_gradient(g, row, weight, gradient, source, dim, layer):
    """The product adds to a gradient in f32, of which each data-parallel rank gets its share once a step."""
    g.add(f'd{weight}p = einsum({gradient}, {source}, eq="bsn,bsk->nk")', layer)
    g.add(f"d{weight} = cast(d{weight}p, to=f32)", FREE, f"to {shared(row, dim)}", layer)


def forward(g, row, layer):
    half = 2 * row.sequence * row.sequence * row.hidden * row.samples  # 4 for each pair, of which half counts
    norm(g, layer, "x", 1)
    g.add("q0 = linear(n1, wq)", layer)
    g.add("kv = linear(n1, wkv)", layer)
    g.add("q = relu(q0)", layer)
    g.add("o = relu(q)", f"flops {half}", layer)
    g.add("a = linear(o, wo)", PART, layer)
    g.add("h = add(x, a)", layer)
    norm(g, layer, "h", 2)
    g.add("u1 = linear(n2, w1)", layer)
    if row.template == "gated":
        g.add("u3 = linear(n2, w3)", layer)
        g.add("f = mul(u1, u3)", layer)
    else:
        g.add("f = relu(u1)", layer)
    g.add("f2 = linear(f, w2)", PART, layer)
    g.add("y = add(h, f2)", layer)
    return half


def inputs_back(g, row, layer, number, pairs):
    """The gradients of the products of norm NUMBER: PAIRS of a gradient and its weight.  The gather of the input and
    the reduction of its gradient run beside products."""
    norm_input, parts = f"n{number}", []
    g.add(f"{norm_input}b = start({norm_input}s)", WHOLE, layer)
    for gradient, weight in pairs:
        g.add(f"dn{number}{weight} = matmul({gradient}, {weight})", layer)
        parts.append(f"dn{number}{weight}")
        if len(parts) > 1:
            g.add(f"{parts[-1]}t = add({parts[-2]}, {parts[-1]})", FREE, layer)
            parts[-1] += "t"
    g.add(f"{norm_input}w = wait({norm_input}b)", layer)
    g.add(f"dn{number}b = start({parts[-1]})", PART, layer)
    for gradient, weight in pairs:
        weight_gradient(g, row, weight, gradient, f"{norm_input}w", 0, layer)
    g.add(f"dn{number} = wait(dn{number}b)", layer)


def backward(g, row, layer, half):
    g.add("dyg = move(dy)", WHOLE, layer)
    g.add("df = matmul(dyg, w2)", layer)
    weight_gradient(g, row, "w2", "dyg", "f", 1, layer)
    if row.template == "gated":
        g.add("du1 = mul(df, u3)", layer)
        g.add("du3 = mul(df, u1)", layer)
    else:
        g.add("du1 = mul(df, u1)", layer)
    inputs_back(g, row, layer, 2, [("du1", "w1")] + ([("du3", "w3")] if row.template == "gated" else []))
    g.add("dh1, dg2 = rms_norm_bwd(dn2, h, r2, g2, dims=[-1])", layer)
    g.add("dh = add(dy, dh1)", layer)
    g.add("dhg = move(dh)", WHOLE, layer)
    g.add("do = matmul(dhg, wo)", layer)
    weight_gradient(g, row, "wo", "dhg", "o", 1, layer)
    g.add("dq1 = mul(do, q)", f"flops {5 * half // 2}", layer)
    g.add("dkv = mul(kv, kv)", layer)
    g.add("dq = relu(dq1)", layer)
    inputs_back(g, row, layer, 1, [("dq", "wq"), ("dkv", "wkv")])
    g.add("dx1, dg1 = rms_norm_bwd(dn1, x, r1, g1, dims=[-1])", layer)
    g.add("dx = add(dh, dx1)", layer)


def loss(g, row):
    """Logits split by the vocabulary: one pass each for the loss and for its gradient."""
    g.add("nfs, rf = rms_norm(y, gf, dims=[-1])")
    g.add("nf = move(nfs)", WHOLE)
    g.add("logits = linear(nf, head)")
    g.add("e = exp(logits)")
    g.add("z = sum(e, dims=[-1])", WHOLE)
    g.add("output z")
    g.add("phase backward")
    g.add("dlogits = mul(e, e)")
    g.add("dnf = matmul(dlogits, head)", PART)
    weight_gradient(g, row, "head", "dlogits", "nf", 0, "")
    g.add("dy, dgf = rms_norm_bwd(dnf, y, rf, gf, dims=[-1])")


def update(g, row, layer):
    g.add("phase update")
    for name, shape, dim, repeated in weights(row):
        repeat, dims = layer if repeated else "", ",".join(map(str, shape))
        if name == "emb":
            continue  # its gradient is not a product
        for state in ("main", "m", "v"):
            g.add(f"param {name}.{state} f32[{dims}] {shared(row, dim)}", repeat)
        gradient = f"d{name}"
        if dim is None:
            gradient = f"{name}.g32"
            g.add(f"{name}.grad = move(d{name})", f"to {shared(row, dim)}", repeat)
            g.add(f"{gradient} = cast({name}.grad, to=f32)", FREE, repeat)
        found = f"adamw({name}.main, {gradient}, {name}.m, {name}.v, step)"
        g.add(f"{name}.new, {name}.newm, {name}.newv = {found}", repeat)
        g.add(f"{name}.new16 = cast({name}.new, to=bf16)", FREE, repeat)
        g.add(f"{name}.next = move({name}.new16)", f"to R,{'R' if dim is None else f'S({dim})'}", repeat)


def graph(row):
    """The text of the graph of one microbatch on all data-parallel ranks of ROW."""
    g, layer = Graph(), f"x{row.layers}"
    g.add(f"mesh dp={row.dp},tp={row.tp}")
    g.add(f"input tokens i64[{row.samples},{row.sequence}] S(0),R")
    g.add("input step f32[] R,R")
    for name, shape, dim, repeated in weights(row):
        placement = "R" if dim is None else f"S({dim})"
        g.add(f"param {name} bf16[{','.join(map(str, shape))}] R,{placement}", layer if repeated else "")
    g.add("words = transpose(tokens, dims=[0,1])", FREE)
    g.add("x = embedding(emb, words)", PART)
    half = forward(g, row, layer)
    loss(g, row)
    backward(g, row, layer, half)
    update(g, row, layer)
    return g.text()
