/* topics.c - the texts of the topics. */
#include "help/topics.h"

#include "base/base.h"

#include <string.h>

static const char spec[] =
    "A spec is a dtype, a shape and a placement for each axis of the mesh:\n"
    "\n"
    "    f32[4096,4096] S(0),R\n"
    "\n"
    "A mesh has sizes, or named axes:\n"
    "\n"
    "    2x4            ranks 0 to 7 in two rows; the axes are called 0 and 1\n"
    "    dp=2,tp=4      the same ranks, with named axes\n"
    "    2x2@4-7        ranks 4 to 7; 2x2@0,2,1,3 lists them in any order\n"
    "    4x8/8          8 ranks share a host\n"
    "    dp=*,tp=4      all ranks of a job (-n), in rows of four\n"
    "\n"
    "A placement is one of:\n"
    "\n"
    "    R              replicated: every rank along the axis holds the same elements\n"
    "    S(0)           dimension 0 is split into consecutive chunks\n"
    "    S(0)[1]        the same; axes that split one dimension do so in the order of their turns\n"
    "    SS(0,2)        strided: dimension 0 is cut into 2 chunks, and each of them is split\n"
    "    B(0;32,8,8)    parts: dimension 0 has parts of these sizes, and each of them is split\n"
    "    G(0;3,3,1,0)   sizes: rank r along the axis holds that number of indices\n"
    "    P(sum)         partial: the sum (avg, min, max, prod) over the ranks is the tensor\n"
    "    O(1)           the rank at coordinate 1 of the axis holds the elements\n"
    "\n"
    "Options that take placements (--placements, --from, --to) take a spec too.  Then --shape and\n"
    "--dtype have no place.  `weft layout` shows what each rank holds.\n";

static const char graph[] =
    "A graph is a file with a line for each tensor and each call of an operator:\n"
    "\n"
    "    mesh dp=2,tp=4\n"
    "    input x  bf16[8,512,1024] S(0),R\n"
    "    param w1 bf16[4096,1024] R,S(0)\n"
    "    param w2 bf16[1024,4096] R,S(1)\n"
    "    h = linear(x, w1)\n"
    "    g = gelu(h)\n"
    "    y = linear(g, w2) ; to S(0),R\n"
    "    n, mean, rstd = layer_norm(y, -, -, dims=[-1]) ; x32\n"
    "    output n\n"
    "\n"
    "`-` is an absent input, `_` a result without a name, `#` begins a comment.  Further lines:\n"
    "`rule TEXT` is a rule of your own (`weft op` explains rules); `phase backward` and `phase\n"
    "update` begin the backward pass and the optimizer.  Clauses behind `;`:\n"
    "\n"
    "    xN                          the line stands for N equal lines\n"
    "    to P                        the result is moved to these placements\n"
    "    out f32[4,6]                the result's shape, where the rule does not give it\n"
    "    keep NAME on AXIS=P         the placement of a tensor on one axis\n"
    "    memory SIZE                 the most that inputs and parameters may take on a rank\n"
    "    mixed                       inputs may have several dtypes\n"
    "    recompute                   the backward pass computes this a second time\n"
    "    flops N, time T, alloc SIZE, free NAME, comm NAME   for `weft step` and `weft reorder`\n"
    "\n"
    "`weft check`, `weft reorder` and `weft step` read graphs; - is standard input.\n";

static const char layout[] =
    "A layout file has the mesh, and placements for patterns of tensor names:\n"
    "\n"
    "    mesh tp=4\n"
    "    # the first pattern that matches decides; * also matches dots, and {q,k,v} is a list\n"
    "    *.{q,k,v}_proj.weight  S(0)\n"
    "    *.o_proj.weight        S(1)\n"
    "    *norm.weight           R\n"
    "\n"
    "A tensor that no pattern matches is an error; a pattern may match none.  --mesh replaces the\n"
    "line `mesh`.  A size may be a product of numbers of the model's config.json, as in\n"
    "B(0; $hidden_size, $num_key_value_heads*$head_dim, $num_key_value_heads*$head_dim).\n"
    "heads0($head_dim) behind placements: dimension 0 has heads of so many indices, and a mesh "
    "that\n"
    "cuts one is refused.\n"
    "--layout takes a file, or the name of one that comes with weft: chatglm, gpt2, llama,\n"
    "mixtral, neox or qwen.\n";

static const char rules[] =
    "A rule file says which tensors are made of which:\n"
    "\n"
    "    *.self_attn.qkv_proj.weight = cat0(*.self_attn.{q,k,v}_proj.weight)\n"
    "    ? lm_head.weight            = tie(model.embed_tokens.weight)\n"
    "    *.rotary_emb.inv_freq       : drop\n"
    "    *                           : cast bf16\n"
    "    * = *\n"
    "\n"
    "`*` is any text, `{part}` any text without a dot, `{q,k,v}` a list.  A rule applies to what\n"
    "earlier rules have left, so a last rule `* = *` keeps the rest.  One that matches nothing is\n"
    "an error, unless it begins with `?`.  `let heads = 32` gives `$heads` a value, which\n"
    "`--set heads=40` replaces.  Functions, where 0 is the dimension:\n"
    "\n"
    "    cat0(a, b)   split0(x, 8, 2, 2)   stack0(a, b)   unstack0(x)   slice0(x, 2:7)\n"
    "    pad0(x, 32064)   align0(x, 64)   group0(x, 8)   flatten0(x)   interleave0(a, b)\n"
    "    transpose(x)   reshape(x, 8, -1)   permute_heads(x, 32)   cast(x, bf16)   tie(x)\n"
    "\n"
    "--rules takes a file, or the name of one that comes with weft: fuse-qkv, split-qkv, "
    "group-qkv,\n"
    "ungroup-qkv, fuse-gate-up, split-gate-up, stack-experts or unstack-experts.\n";

static const char costs[] =
    "A cost table is text; lines may be in any order after the version and `base`:\n"
    "\n"
    "    weft-cost 2\n"
    "    base h100\n"
    "    name my-cluster\n"
    "    flops 560000000\n"
    "    domain between 3072\n"
    "    all-gather between 6600 2700 23000\n"
    "\n"
    "With `base`, a line replaces the line of the built-in table.  A kind of step with `within` a "
    "host,\n"
    "`between` hosts or `beyond` a domain has nanoseconds, nanoseconds per further rank, and\n"
    "femtoseconds per byte.  `copy`, `pack`, `reduce` and `memory` are femtoseconds per byte;\n"
    "`flops` is in millions per second.  `weft costs` lists the built-in tables, `weft costs "
    "NAME`\n"
    "prints one, and `weft bench calibrate` measures one.  --costs and WEFT_COSTS take a name or "
    "a\n"
    "file.\n";

const struct help_topic help_topics[] = {
    {"spec", "meshes, placements and specs", "layouts.md", spec},
    {"graph", "graphs of operators", "operators.md", graph},
    {"layout", "the layouts of all tensors of a checkpoint", "checkpoints.md", layout},
    {"rules", "rename, join, split and cast tensors of a checkpoint", "checkpoints.md", rules},
    {"costs", "cost tables", "cost-model.md", costs},
};
const size_t help_topic_count = WF_COUNT(help_topics);

const struct help_topic *help_topic_find(const char *name)
{
    for (size_t i = 0; i < help_topic_count; i++)
        if (strcmp(name, help_topics[i].name) == 0) return &help_topics[i];
    return NULL;
}
