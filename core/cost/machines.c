/* machines.c - built-in tables of GPUs.
 *
 * By rule: memory has 0.85 of the stated bandwidth, a NIC 0.9 of its line rate, and NVLink the bus
 * rate of NCCL, 230 GB/s of 300 (A100) and 370 of 450 (H100), in this proportion on other devices.
 * A copy reads and writes each byte, a pack takes 1.4 times as long, and a reduction reads each
 * operand.  NCCL's bus rate includes the reduction, so the reducing kinds have less per byte.
 * Latencies are those of PyTorch's DTensor.  `flops` is fitted on one run for each family, or the
 * same share of the peak as on the H100.  Products in fp8 have the same share of the peak of fp8.
 * Fused attention has 0.6 of the peak on the A100, and 0.35 on others: FlashAttention-2 reaches 50
 * to 73 % on an A100 (arXiv 2307.08691) and 35 % on an H100 (arXiv 2407.08608).  At 500 W it is as
 * much slower as products are.  Communication
 * takes 15 % of the processor while it runs (Calculon, SC'23), and takes 30 % longer in training
 * than alone (vTrain, MICRO'24). */
#include "cost.h"

/* The communicating kinds: WITHIN and BETWEEN in femtoseconds per byte, and the rates within a host
 * of reduce-scatter and all-reduce. */
#define RATE(base, peer, within, between_peer, between)                                            \
    {                                                                                              \
        {base, peer, within}, {base, between_peer, between},                                       \
        {                                                                                          \
            base, between_peer, between                                                            \
        }                                                                                          \
    }
#define GPU(within, scatter, reduce_all, between, memory_fs)                                       \
    .built_in = true,                                                                              \
    .rates = {[WEFT_STEP_SLICE] = RATE(2000, 0, 0, 0, 0),                                          \
              [WEFT_STEP_PARTIAL] = RATE(2000, 0, 0, 0, 0),                                        \
              [WEFT_STEP_ALL_GATHER] = RATE(6600, 600, within, 2700, between),                     \
              [WEFT_STEP_REDUCE_SCATTER] = RATE(6600, 600, scatter, 2700, between),                \
              [WEFT_STEP_ALL_REDUCE] = RATE(6600, 600, reduce_all, 2700, between),                 \
              [WEFT_STEP_ALL_TO_ALL] = RATE(6600, 600, within, 2700, between),                     \
              [WEFT_STEP_PERMUTE] = RATE(6600, 0, within, 0, between),                             \
              [WEFT_STEP_EXCHANGE] = RATE(8600, 600, within, 2700, between),                       \
              [WEFT_STEP_BROADCAST] = RATE(6600, 600, within, 2700, between),                      \
              [WEFT_STEP_REDUCE] = RATE(6600, 600, scatter, 2700, between)},                       \
    .copy = 2 * (memory_fs), .pack = 14 * (memory_fs) / 5, .reduce = (memory_fs),                  \
    .memory = (memory_fs), .launch = 7000, .by_size = true, .shares_links = true,                  \
    .compute_beside = 15, .moves_beside = 30

#define BY_RULE "by rule, not checked: "

static const weft_cost_table a100_80 = {
    .name = "a100-80",
    .flops = 202400000,
    .attention = 187000000,
    .peak = 312000000,
    .source = "flops fitted on Megatron-LM 175 B, selective recompute, 64 A100 (Korthikanti 2022); "
              "18 other runs: mean error 4.3 %, at most 8.3 %; MFU of 312 TFLOP/s",
    GPU(4348, 3688, 4018, 44444, 577),
};

static const weft_cost_table h100 = {
    .name = "h100",
    .flops = 553000000,
    .attention = 346000000,
    .flops_f8 = 1107000000,
    .peak = 989000000,
    .source = "flops fitted on Nemotron-4 340 B, 1536 H100 (arXiv 2406.11704); 17 other runs: mean "
              "error 2.7 %, at most 8.8 %; MFU of 989 TFLOP/s",
    GPU(2703, 2302, 2502, 22222, 351),
};

static const weft_cost_table h100_500w = {
    .name = "h100-500w",
    .flops = 469000000,
    .attention = 293000000,
    .flops_f8 = 938000000,
    .peak = 989000000,
    .source =
        "flops fitted on TorchTitan 8 B, 8 H100 at 500 W (2024-12); 2 other runs: mean error 0.7 "
        "%, at most 1.0 %; MFU of 989 TFLOP/s",
    GPU(2703, 2143, 2423, 22222, 490),
};

static const weft_cost_table h200 = {
    .name = "h200",
    .flops = 553000000,
    .attention = 346000000,
    .flops_f8 = 1107000000,
    .peak = 989000000,
    .source = BY_RULE "an H100 with 4.8 TB/s of memory; MFU of 989 TFLOP/s",
    GPU(2703, 2423, 2563, 22222, 245),
};

static const weft_cost_table b200 = {
    .name = "b200",
    .flops = 1258000000,
    .attention = 787000000,
    .flops_f8 = 2516000000,
    .peak = 2250000000,
    .source = BY_RULE "8 TB/s of memory, NVLink of 900 GB/s; MFU of 2250 TFLOP/s",
    GPU(1351, 1183, 1267, 22222, 147),
};

static const weft_cost_table gb200 = {
    .name = "gb200",
    .flops = 1398000000,
    .attention = 875000000,
    .flops_f8 = 2796000000,
    .peak = 2500000000,
    .domains = {72},
    .source = BY_RULE "8 TB/s of memory, NVLink of 900 GB/s over 72 ranks; MFU of 2500 TFLOP/s",
    GPU(1351, 1183, 1267, 22222, 147),
};

static const weft_cost_table mi300x = {
    .name = "mi300x",
    .flops = 731000000,
    .attention = 457000000,
    .flops_f8 = 1462000000,
    .peak = 1307000000,
    .source = BY_RULE "5.3 TB/s of memory, links of 448 GB/s; MFU of 1307 TFLOP/s",
    GPU(2717, 2463, 2590, 22222, 222),
};

const weft_cost_table *const wf_cost_machines[] = {&h100, &h100_500w, &a100_80, &h200,
                                                   &b200, &gb200,     &mi300x,  NULL};
