"""A microbatch of Megatron-LM as a graph for `weft step`: tensor parallel with full or selective recompute.

Views, and kernels that Megatron fuses into another one, take no time.  The scores of attention are tensors, as without
flash attention.  A rank keeps its part of the sequence between layers.  With full recompute Megatron-LM of 2021 had the
whole sequence there: its all-reduce moves the bytes of the two moves here, and the pointwise lines are doubled for it.
"""

FREE = "time 0ns"


class Graph:
    def __init__(self):
        self.lines = []

    def add(self, line, *clauses):
        self.lines.append(" ; ".join([line, *[clause for clause in clauses if clause]]))

    def text(self):
        return "\n".join(self.lines) + "\n"


def attention(g, layer, suffix, source):
    """The part that selective recompute runs once more, from q, kt and v with the suffix SOURCE."""
    g.add(f"sc{suffix} = matmul(q{source}, kt{source})", layer)
    g.add(f"p{suffix} = softmax(sc{suffix}, dim=-1)", layer)
    g.add(f"pd{suffix}, pm{suffix} = dropout(p{suffix}, p=0.1)", layer)
    g.add(f"ctx{suffix} = matmul(pd{suffix}, v{source})", layer)


def views(g, row, layer, again=""):
    d = row.hidden // row.heads
    g.add(f"qkv5{again} = reshape(qkv{again}, shape=[{row.sequence},{row.samples},{row.heads},3,{d}])", FREE, layer)
    for index, name in enumerate("qkv"):
        g.add(f"{name}0{again} = select(qkv5{again}, dim=3, index={index})", FREE, layer)
        g.add(f"{name}{again} = permute({name}0{again}, order=[1,2,0,3])", FREE, layer)
    g.add(f"kt{again} = transpose(k{again}, dims=[2,3])", FREE, layer)


def forward(g, row, layer, again=""):
    """The forward lines of a layer; AGAIN: the suffix of their results, when full recompute runs them once more."""
    whole, part = "to S(1),R", "to S(1),S(0)"
    r, full = again, row.full

    def norm(name, source, gain, number):
        if full:  # on all ranks
            g.add(f"{name}g{r} = move({source})", whole, layer)
            g.add(f"{name}{r}, m{number}{r}, r{number}{r} = layer_norm({name}g{r}, {gain}, -, dims=[-1])", layer)
            g.add(f"{name}z{r} = add({name}g{r}, {name}g{r})", layer)
        else:
            g.add(f"{name}s{r}, m{number}{r}, r{number}{r} = layer_norm({source}, {gain}, -, dims=[-1])", layer)
            g.add(f"{name}{r} = move({name}s{r})", whole, layer)

    norm("n1", "x", "g1", 1)
    g.add(f"qkv{r} = linear(n1{r}, wqkv)", layer)
    views(g, row, layer, r)
    attention(g, layer, r, r)
    g.add(f"c1{r} = permute(ctx{r}, order=[2,0,1,3])", FREE, layer)
    g.add(f"c2{r} = reshape(c1{r}, shape=[{row.sequence},{row.samples},{row.hidden}])", FREE, layer)
    g.add(f"a{r} = linear(c2{r}, wo)", part, layer)
    g.add(f"h{r} = add(x, a{r})", layer)
    norm("n2", f"h{r}", "g2", 2)
    g.add(f"u{r} = linear(n2{r}, w1)", layer)
    g.add(f"f{r} = gelu(u{r})", layer)
    g.add(f"f2{r} = linear(f{r}, w2)", part, layer)
    g.add(f"y{r} = add(h{r}, f2{r})", layer)


def weight_gradient(g, row, weight, gradient, source, placement, layer):
    """The product adds to a gradient, which is reduced once a step."""
    g.add(f'd{weight}p = einsum({gradient}, {source}, eq="bsn,bsk->nk")', layer)
    g.add(f"d{weight} = cast(d{weight}p, to={row.gradients})", FREE, f"to R,{placement}", layer)


def backward(g, row, layer):
    whole, part = "to S(1),R", "to S(1),S(0)"
    full = row.full
    r = "_again" if full else ""
    if full:
        forward(g, row, layer, r)
    shape = f"[{row.sequence},{row.samples},{row.heads},{row.hidden // row.heads}]"

    def product(gradient, weight, result, kept, recomputed):
        """RESULT, the gradient of a column-parallel product, beside the gradient of its weight."""
        if not full:  # the input was kept in parts; its gather runs beside the first product
            g.add(f"{kept}b = start({kept}s)", whole, layer)
        g.add(f"{result}p = matmul({gradient}, {weight})", layer)
        if not full:
            g.add(f"{kept}w = wait({kept}b)", layer)
        g.add(f"{result}b = start({result}p)", part, layer)
        weight_gradient(g, row, weight, gradient, recomputed if full else kept + "w", "S(0)", layer)
        g.add(f"{result} = wait({result}b)", layer)

    g.add("dyg = move(dy)", whole, layer)
    g.add("df = matmul(dyg, w2)", layer)
    weight_gradient(g, row, "w2", "dyg", f"f{r}", "S(1)", layer)
    g.add(f"du = gelu_bwd(df, u{r})", layer)
    product("du", "w1", "dn2", "n2", f"n2{r}")
    norm_back(g, full, layer, "dn2", f"h{r}", f"n2g{r}", f"m2{r}", f"r2{r}", "g2", "dh1")
    g.add("dh = add(dy, dh1)", layer)
    g.add("dhg = move(dh)", whole, layer)
    g.add("dc2 = matmul(dhg, wo)", layer)
    weight_gradient(g, row, "wo", "dhg", f"c2{r}", "S(1)", layer)
    g.add(f"dc1 = reshape(dc2, shape={shape})", FREE, layer)
    g.add("dctx = permute(dc1, order=[1,2,0,3])", FREE, layer)
    s = r
    if not full:
        s = "_again"
        attention(g, layer, s, "")
    g.add(f"vt = transpose(v{r}, dims=[2,3])", FREE, layer)
    g.add("dpd = matmul(dctx, vt)", layer)
    g.add(f"pt = transpose(pd{s}, dims=[2,3])", FREE, layer)
    g.add("dv = matmul(pt, dctx)", layer)
    g.add(f"dp0 = mul(dpd, p{s})", layer)  # the gradient of dropout
    g.add(f"dsc = softmax_bwd(dp0, p{s}, dim=-1)", layer)
    g.add(f"dq = matmul(dsc, k{r})", layer)
    g.add("dsct = transpose(dsc, dims=[2,3])", FREE, layer)
    g.add(f"dk = matmul(dsct, q{r})", layer)
    for name in "qkv":
        g.add(f"d{name}1 = permute(d{name}, order=[2,0,1,3])", FREE, layer)
    g.add("dqkv5 = stack(dq1, dk1, dv1, dim=3)", FREE, layer)
    g.add(f"dqkv = reshape(dqkv5, shape=[{row.sequence},{row.samples},{3 * row.hidden}])", FREE, layer)
    product("dqkv", "wqkv", "dn1", "n1", f"n1{r}")
    norm_back(g, full, layer, "dn1", "x", f"n1g{r}", f"m1{r}", f"r1{r}", "g1", "dx1")
    g.add("dx = add(dh, dx1)", layer)


def norm_back(g, full, layer, gradient, source, whole, mean, rstd, gain, result):
    if full:
        g.add(f"{gradient}g = move({gradient})", FREE, "to S(1),R", layer)  # the all-reduce moves it already
        g.add(f"{result}g, d{gain} = layer_norm_bwd({gradient}g, {whole}, {mean}, {rstd}, {gain}, -, dims=[-1])", layer)
        g.add(f"{result} = move({result}g)", FREE, "to S(1),S(0)", layer)
    else:
        g.add(f"{result}, d{gain} = layer_norm_bwd({gradient}, {source}, {mean}, {rstd}, {gain}, -, dims=[-1])", layer)


def weights(row):
    """Name, shape, placement on the axis tp, and is it one of every layer?"""
    h, v = row.hidden, row.vocabulary
    return [("emb", (v, h), "S(0)", False), ("gf", (h,), "R", False),
            ("g1", (h,), "R", True), ("g2", (h,), "R", True),
            ("wqkv", (3 * h, h), "S(0)", True), ("wo", (h, h), "S(1)", True),
            ("w1", (4 * h, h), "S(0)", True), ("w2", (h, 4 * h), "S(1)", True)]


def loss(g, row):
    """Logits split by the vocabulary: one pass each for the loss and for its gradient."""
    g.add("nfs, mf, rf = layer_norm(y, gf, -, dims=[-1])")
    g.add("nf = move(nfs)", "to S(1),R")
    g.add("logits = linear(nf, emb)")
    g.add("e = exp(logits)")
    g.add("z = sum(e, dims=[-1])", "to S(1),R")
    g.add("output z")
    g.add("phase backward")
    g.add("dlogits = mul(e, e)")
    g.add("dnf = matmul(dlogits, emb)", "to S(1),S(0)")
    weight_gradient(g, row, "emb", "dlogits", "nf", "S(0)", "")
    g.add("dy, dgf = layer_norm_bwd(dnf, y, mf, rf, gf, -, dims=[-1])")


def graph(row):
    """The text of the graph of one microbatch on all data-parallel ranks of ROW."""
    g, layer = Graph(), f"x{row.layers}"
    g.add(f"mesh dp={row.dp},tp={row.tp}")
    g.add(f"input tokens i64[{row.samples},{row.sequence}] S(0),R")
    g.add("input step f32[] R,R")
    for name, shape, placement, repeated in weights(row):
        g.add(f"param {name} f16[{','.join(map(str, shape))}] R,{placement}", layer if repeated else "")
    g.add("words = transpose(tokens, dims=[0,1])", FREE)
    g.add("x = embedding(emb, words)", "to S(1),S(0)")
    forward(g, row, layer)
    loss(g, row)
    backward(g, row, layer)
    g.add("phase update")
    for name, shape, placement, repeated in weights(row):
        repeat, dims = layer if repeated else "", ",".join(map(str, shape))
        for state in ("main", "m", "v"):
            g.add(f"param {name}.{state} f32[{dims}] R,{placement}", repeat)
        g.add(f"{name}.grad = move(d{name})", f"to R,{placement}", repeat)
        gradient = f"{name}.grad"
        if len(shape) == 1 or row.gradients != "f32":
            gradient = f"{name}.g32"
            g.add(f"{gradient} = cast({name}.grad, to=f32)", FREE, repeat)
        update = f"adamw({name}.main, {gradient}, {name}.m, {name}.v, step)"
        g.add(f"{name}.new, {name}.newm, {name}.newv = {update}", repeat)
    return g.text()
