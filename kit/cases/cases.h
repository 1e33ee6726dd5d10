/* cases.h - the functions and conditions that cases.def names. */
#ifndef WEFT_KIT_CASES_H
#define WEFT_KIT_CASES_H

#include "frame/kit.h"

#define LEVEL(name, summary, when)
#define CASE(path, function, when)  void kit_##function(struct kit *kit);
#define CASES(path, function, when) void kit_##function(struct kit *kit);
#include "cases.def"
#undef LEVEL
#undef CASE
#undef CASES

/* The same on all ranks.  Some of them ask the plugin, together. */
typedef bool kit_condition(struct kit *kit);

kit_condition kit_when_always, kit_when_comm, kit_when_host_memory, kit_when_peers;
kit_condition kit_when_ranges, kit_when_costs, kit_when_carriers, kit_when_messages, kit_when_tags,
    kit_when_unordered_messages;
kit_condition kit_when_faults, kit_when_faults_in_messages, kit_when_faults_in_processes;
kit_condition kit_when_windows, kit_when_registration, kit_when_kernels, kit_when_draws,
    kit_when_some_spans;
kit_condition kit_when_spans, kit_when_merges, kit_when_host_works, kit_when_pull;
kit_condition kit_when_reads, kit_when_exchanges;
kit_condition kit_when_wrapping_sums;

#endif
