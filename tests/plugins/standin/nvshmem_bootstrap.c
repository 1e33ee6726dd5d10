/* nvshmem_bootstrap.c - nvshmem_bootstrap_uid.so.3, which only has to exist. */
__attribute__((visibility("default"))) int nvshmemi_bootstrap_plugin_init(void);
__attribute__((visibility("default"))) int nvshmemi_bootstrap_plugin_init(void)
{
    return 0;
}
