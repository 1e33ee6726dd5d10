/* launcher.c - for programs that start ranks: the identity of a process, and a rendezvous. */
#include "launch.h"
#include "weft/launch.h"

#include <stdio.h>
#include <string.h>

struct weft_rendezvous {
    uint64_t made; /* of fork.h */
    struct wf_server *server;
    int32_t size;
    char address[WF_ADDRESS_TEXT], token[40];
};

weft_status weft_launch_get(weft_launch_info *out)
{
    struct wf_launch launch;
    weft_launch_info info;
    weft_status status;

    WF_TRY(wf_require(out, "weft_launch_get: out"));
    wf_environment_lock();
    status = wf_launch_read(wf_environment(), &launch);
    wf_environment_unlock();
    if (status != WEFT_OK) return status;
    info = (weft_launch_info){.launcher = launch.launcher,
                              .rank = launch.rank,
                              .size = launch.size,
                              .local_rank = launch.local_rank};
    return wf_info_write("weft_launch_info", &info, sizeof info, out);
}

static weft_status listen_for_ranks(const weft_rendezvous_options *given, weft_rendezvous *out)
{
    struct wf_server_options options = {.size = given->size,
                                        .serving_rank = -1,
                                        .grows = given->grows,
                                        .join_timeout_ns = given->join_timeout_ns};
    struct wf_address address;
    uint8_t secret[16];

    wf_random_bytes(secret, sizeof secret);
    for (size_t i = 0; i < sizeof secret; i++)
        snprintf(out->token + 2 * i, 3, "%02x", (unsigned)secret[i]);
    options.key = options.base = wf_job_key(out->token);
    WF_TRY(wf_address_parse("the address to listen on",
                            given->listen != NULL ? given->listen : "localhost", 0, &address));
    WF_TRY(wf_server_create(&options, &address, &out->server));
    wf_address_print(&address, out->address);
    out->size = given->size;
    return WEFT_OK;
}

weft_status weft_rendezvous_open(const weft_rendezvous_options *options, weft_rendezvous **out)
{
    weft_rendezvous_options given = {0};
    weft_rendezvous *made;
    struct wf_config *config;
    weft_status status;

    WF_TRY(wf_require(options, "weft_rendezvous_open: options"));
    WF_TRY(wf_require(out, "weft_rendezvous_open: out"));
    WF_TRY(wf_options_read("weft_rendezvous_options", options, &given, sizeof given));
    if (given.size < 1)
        return wf_fail(WEFT_ERR_INVALID, "weft_rendezvous_open: size is %d; it must be at least 1",
                       given.size);
    WF_TRY(wf_config_read(&config));
    if (given.join_timeout_ns == 0) given.join_timeout_ns = config->join_timeout_ns;
    wf_config_release(&config);
    made = wf_calloc(1, sizeof *made);
    if (made == NULL) return wf_fail_memory(sizeof *made);
    made->made = wf_made_now(WF_KIND_RENDEZVOUS);
    status = listen_for_ranks(&given, made);
    if (status == WEFT_OK)
        *out = made;
    else
        wf_free(made);
    return status;
}

const char *weft_rendezvous_address(const weft_rendezvous *rendezvous)
{
    return rendezvous != NULL ? rendezvous->address : NULL;
}

const char *weft_rendezvous_token(const weft_rendezvous *rendezvous)
{
    return rendezvous != NULL ? rendezvous->token : NULL;
}

weft_status weft_rendezvous_serve(weft_rendezvous *rendezvous)
{
    WF_TRY(wf_require(rendezvous, "weft_rendezvous_serve: rendezvous"));
    if (!wf_is_usable(rendezvous->made, WF_KIND_RENDEZVOUS))
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_rendezvous_serve: this process is a fork of the process that called "
                       "weft_rendezvous_open; only that process can serve");
    return wf_server_start(rendezvous->server);
}

void weft_rendezvous_report_gone(weft_rendezvous *rendezvous, int32_t rank, const char *text)
{
    if (rendezvous == NULL || !wf_is_usable(rendezvous->made, WF_KIND_RENDEZVOUS)) return;
    if (rank < 0 || rank >= rendezvous->size) return;
    wf_server_report_gone(rendezvous->server, rank, text != NULL ? text : "is gone");
}

bool weft_rendezvous_has_entered(const weft_rendezvous *rendezvous, int32_t number)
{
    return rendezvous != NULL && wf_is_usable(rendezvous->made, WF_KIND_RENDEZVOUS) &&
           wf_server_has_entered(rendezvous->server, number);
}

void weft_rendezvous_close(weft_rendezvous **rendezvous)
{
    if (rendezvous == NULL || *rendezvous == NULL) return;
    if (wf_is_usable((*rendezvous)->made, WF_KIND_RENDEZVOUS)) { /* and not a parent process's */
        wf_server_release(&(*rendezvous)->server);
        wf_free(*rendezvous);
    }
    *rendezvous = NULL;
}
