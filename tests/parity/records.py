"""From a recorded call of PyTorch to a call of weft: names, attributes, order of inputs."""
import math

RENAMED = {
    "add_int": "add", "sub_int": "sub", "mul_int": "mul", "sum_int": "sum", "max": "amax", "min": "amin",
    "softmax_backward": "softmax_bwd", "log_softmax_backward": "log_softmax_bwd",
    "gelu_backward": "gelu_bwd", "silu_backward": "silu_bwd", "sigmoid_backward": "sigmoid_bwd",
    "tanh_backward": "tanh_bwd", "threshold_backward": "threshold_bwd", "conv1d": "conv",
    "conv2d": "conv", "conv2d_backward": "conv_bwd", "avg_pool2d": "avg_pool", "max_pool2d": "max_pool",
    "upsample_nearest2d": "interpolate", "constant_pad_nd": "pad", "linalg_qr": "qr",
    "linalg_inv_ex": "inv_ex", "linalg_svd": "svd", "sort_stable": "sort", "median": "median_dim",
    "fft_c2c": "fft", "embedding_backward": "embedding_bwd", "layer_norm_backward": "layer_norm_bwd",
    "rms_norm_backward": "rms_norm_bwd", "group_norm_backward": "group_norm_bwd",
    "mse_loss_backward": "mse_loss_bwd", "nll_loss2d": "nll_loss", "nll_loss_backward": "nll_loss_bwd",
    "select_backward": "select_bwd", "slice_backward": "slice_bwd", "vector_norm": "norm",
    "one_hot_scatter": "scatter_value", "fused_adam": "adam", "fused_adamw": "adamw", "fused_sgd": "sgd",
    "unsafe_view": "reshape", "sdpa_flash": "sdpa", "sdpa_efficient": "sdpa", "sdpa_cudnn": "sdpa",
    "sdpa_cpu_flash": "sdpa", "sdpa_flash_backward": "sdpa_bwd", "sdpa_efficient_backward": "sdpa_bwd",
    "bernoulli_": "uniform_",
}  # fmt: skip
REDUCTIONS = {"sum", "mean", "amax", "amin", "prod", "all", "any", "nansum", "count_nonzero", "var", "std",
              "var_mean", "logsumexp", "argmax", "argmin", "max_dim", "min_dim", "median", "kthvalue", "max",
              "min", "vector_norm", "sum_int", "norm"}  # fmt: skip
ALONG = {"softmax", "log_softmax", "softmax_backward", "log_softmax_backward", "cumsum", "cumprod",
         "logcumsumexp", "cummax", "sort", "sort_stable", "argsort", "topk", "gather", "scatter",
         "scatter_add", "index_add", "index_copy", "index_fill", "index_select", "select", "select_scatter",
         "slice_scatter", "cat", "stack", "unbind", "split", "split_with_sizes", "unsqueeze", "glu", "unfold",
         "scatter_reduce", "safe_softmax", "one_hot_scatter", "select_backward", "slice_backward", "slice",
         "cross"}  # fmt: skip
SHAPED = {"view", "reshape", "unsafe_view", "expand", "new_zeros", "new_ones", "new_full", "new_empty",
          "new_empty_strided"}  # fmt: skip
WINDOWS = {"conv1d", "conv2d", "conv2d_backward", "avg_pool2d", "max_pool2d"}
# Operators with optional inputs, and how many inputs the rule has.
OPTIONAL = {"layer_norm": 3, "rms_norm": 2, "conv2d": 3, "conv1d": 3, "nll_loss": 3, "nll_loss2d": 3,
            "nll_loss_backward": 5, "batch_norm": 5, "group_norm": 3, "layer_norm_backward": 6,
            "group_norm_backward": 5}  # fmt: skip
# Operators whose outputs follow from the rule; PyTorch has more or fewer.
OWN_OUTPUTS = {"sdpa", "sdpa_bwd", "dropout", "adam", "adamw", "sgd", "nll_loss", "equal", "batch_norm"}


def listed(value):
    return value if isinstance(value, list) else [value]


def reduction_attrs(op, params):
    attrs = {} if params.get("dim") is None else {"dims": listed(params["dim"])}
    if params.get("keepdim"):
        attrs["keepdim"] = 1
    if op in ("vector_norm", "norm"):
        order = params.get("ord", params.get("p", 2))
        attrs["p"] = {"inf": math.inf, "-inf": -math.inf}.get(order, order)
    return attrs


def cast_attrs(record, to):
    source = record["in"][0][1]
    attrs = {"to": to}
    if source[0] in "fb" and source != "bool":
        attrs["from"] = "float"
    if to[0] in "iu":
        attrs["integer"] = 1
    return attrs


def slice_attrs(params):
    attrs = {"start": params.get("start") or 0, "step": params.get("step", 1)}
    if params.get("end", "max") not in ("max", None):
        attrs["end"] = params["end"]
    return attrs


def special_attrs(op, params, record, outputs):
    """Attributes that only a few operators have."""
    first = record["in"][0][0]
    made = {
        "cast": lambda: cast_attrs(record, params["dtype"]),
        "view_dtype": lambda: {"to": params["dtype"]},
        "topk": lambda: {"k": params["k"]},
        "permute": lambda: {"order": params["dims"]},
        "transpose": lambda: {"dims": params["dims"]},
        "repeat": lambda: {"repeats": params["repeats"]},
        "constant_pad_nd": lambda: {"pad": params["pad"], "v": float(params.get("value", 0))},
        "slice": lambda: slice_attrs(params),
        "fft_c2c": lambda: {"dims": params["dim"]},
        "histc": lambda: {"bins": params["bins"], "ranged": int(params.get("min", 0) != params.get("max", 0))},
        "select_backward": lambda: {"n": params["input_sizes"][params["dim"]]},
        "slice_backward": lambda: {"n": params["input_sizes"][params["dim"]]},
        "embedding_backward": lambda: {"v": params["num_weights"],
                                       "scaled": int(bool(params.get("scale_grad_by_freq")))},
        "index": lambda: {"pos": params["pos"]},
        "index_put": lambda: {"pos": params["pos"], "accumulate": int(bool(params.get("accumulate")))},
        "scatter_reduce": lambda: {"reduce": params.get("reduce", "")},
        "multinomial": lambda: {"k": params["num_samples"]},
        "upsample_nearest2d": lambda: {"mode": "nearest"},
        "max_pool2d": lambda: {"indices": 1},
        "unbind": lambda: {"count": first[params.get("dim", 0)]},
    }  # fmt: skip
    attrs = made[op]() if op in made else {}
    if op in ("split", "split_with_sizes"):
        attrs["sizes"] = [one[0][params.get("dim", 0)] for one in outputs]
    if op in ("roll", "flip") and params.get("dims") is not None:
        attrs["dims"] = params["dims"]
    if op == "squeeze" and params.get("dim") is not None:
        attrs["dims"] = listed(params["dim"])
    if op in WINDOWS:
        attrs.update({key: params[key] for key in ("stride", "padding", "dilation", "groups", "kernel")
                      if key in params})  # fmt: skip
    return attrs


def attrs_of(record, outputs):
    op, params = record["op"], record.get("params") or {}
    args = record.get("args") or []
    attrs = reduction_attrs(op, params) if op in REDUCTIONS else {}
    if op in ALONG:
        attrs["dim"] = listed(params.get("dim", -1))[0]
    if op.endswith("_scalar") and op.split("_")[0] in ("add", "sub", "mul", "div"):
        attrs["s"] = float(params.get("scalar", 1))
    if op in SHAPED:
        attrs["shape"] = params["shape"]
    if "normalized_shape" in params:
        attrs["dims"] = list(range(-len(params["normalized_shape"]), 0))
    if op.startswith("group_norm"):
        attrs["g"] = params["group"]
    if op in ("mse_loss", "bce_with_logits", "nll_loss", "nll_loss2d", "nll_loss_backward"):
        attrs["reduction"] = params["reduction"]
    if op in ("nll_loss", "nll_loss2d") and len(record["in"]) == 3:
        attrs["weighted"] = 1
    if op == "index_fill":
        attrs["v"] = 1.0 if isinstance(args[3], dict) else float(args[3])
    if op == "masked_fill":
        attrs["v"] = float(params.get("value", 1))
    attrs.update(special_attrs(op, params, record, outputs))
    return attrs


def name_of(record):
    op, params = record["op"], record.get("params") or {}
    if op in ("gt", "ge", "lt", "le", "eq", "ne") and record["aten"].endswith("Scalar"):
        return op + "_scalar"
    if op == "scatter" and record["aten"].endswith("value"):
        return "scatter_value"
    if op == "masked_fill" and len(record["in"]) == 3:
        return "masked_fill_tensor"
    if op == "grouped_mm":
        return {"3d3d": "grouped_mm_3d", "2d3d": "grouped_mm", "2d2d": "grouped_mm_k",
                "3d2d": "grouped_mm_t"}[params["form"]]  # fmt: skip
    return RENAMED.get(op, op)


def inputs_of(record):
    """Numbers of the tensors in the order of the rule; None: absent."""
    op = record["op"]
    order = list(range(len(record["in"])))
    if op in ("sdpa_flash_backward", "sdpa_efficient_backward"):
        return order[:6]  # the others are the state of random numbers
    if op not in OPTIONAL:
        return order
    args = record.get("args") or [{"t": i} for i in order]
    tensors = [a["t"] if a else None for a in args if a is None or (isinstance(a, dict) and "t" in a)]
    tensors = tensors[: OPTIONAL[op]]
    if op.startswith("nll_loss") and (record.get("params") or {}).get("reduction") == "mean" and \
            len(record["in"]) == 2:  # fmt: skip
        tensors = tensors[:2]
    return tensors


def why_not(record):
    """Why the record is no call of one operator of weft; None: it is."""
    op = record["op"]
    if record["aten"] == "composite" or op == "sdpa_math":
        return "several operators"
    if op.startswith("foreach_") or op.startswith("fused_"):
        return "lists of tensors, each an operator by itself"
    if op == "item":
        return "returns no tensor"
    if op == "bce_with_logits" and len(record["in"]) > 2:
        return "a weighted loss"
    return None


def outputs_of(record, name):
    said = record.get("out_meta") or []
    if name in OWN_OUTPUTS or any(one is None for one in said):
        return None
    return said
