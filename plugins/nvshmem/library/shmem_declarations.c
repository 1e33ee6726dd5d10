/* shmem_declarations.c - compile-time checks of our declarations against NVIDIA's headers, where
 * these are installed. */
#include <assert.h> /* their headers use what these declare without them */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "bootstrap_device_host/nvshmem_uniqueid.h"
#include "device_host/nvshmem_types.h"
#include "device_host_transport/nvshmem_constants.h"

#include "device/gpu_declarations.h"
#include "shmem_api.h"

SAME_SIZE(shmem_id, nvshmemx_uniqueid_v1);
SAME_SIZE(shmem_id_arguments, nvshmemx_uniqueid_args_v1);
SAME_PLACE(shmem_id_arguments, id, nvshmemx_uniqueid_args_v1, id);
SAME_PLACE(shmem_id_arguments, rank, nvshmemx_uniqueid_args_v1, myrank);
SAME_PLACE(shmem_id_arguments, ranks, nvshmemx_uniqueid_args_v1, nranks);
SAME_SIZE(shmem_arguments, nvshmemx_init_args_v1);
SAME_PLACE(shmem_arguments, id, nvshmemx_init_args_v1, uid_args);
SAME_SIZE(shmem_attributes, nvshmemx_init_attr_v1);
SAME_PLACE(shmem_attributes, arguments, nvshmemx_init_attr_v1, args);
SAME_SIZE(shmem_team_options, nvshmem_team_config_v2);
SAME_PLACE(shmem_team_options, id, nvshmem_team_config_v2, uniqueid);
SAME_VALUE(SHMEM_TEAM_OPTIONS_VERSION, NVSHMEMI_TEAM_CONFIG_VERSION_2_IDENTIFIER);
SAME_VALUE(SHMEM_TEAM_HAS_ID, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID);
SAME_VALUE(SHMEM_INITIALIZED, NVSHMEM_STATUS_IS_INITIALIZED);
SAME_VALUE(SHMEM_LIMITED, NVSHMEM_STATUS_LIMITED_MPG);
SAME_VALUE(SHMEM_SHARED, NVSHMEM_STATUS_FULL_MPG);
