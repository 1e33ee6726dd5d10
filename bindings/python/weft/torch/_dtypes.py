"""The dtypes of weft in PyTorch."""

import torch

DTYPES = {
    "bool": torch.bool, "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "u16": torch.uint16, "i32": torch.int32,
    "u32": torch.uint32, "i64": torch.int64, "u64": torch.uint64, "f16": torch.float16, "bf16": torch.bfloat16,
    "f32": torch.float32, "f64": torch.float64, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
    "c64": torch.complex64, "c128": torch.complex128,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}
