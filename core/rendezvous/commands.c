/* commands.c - what other threads make the rendezvous server's thread do. */
#include "server.h"

#include "weft/status.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

void wf_server_drop_commands(struct wf_server *s)
{
    struct wf_command command;

    if (fcntl(s->commands[0], F_SETFL, O_NONBLOCK) != 0) return;
    while (read(s->commands[0], &command, sizeof command) == sizeof command) {
        if (command.kind == WF_COMMAND_ADOPT) wf_fd_close(command.fd);
        if (command.kind == WF_COMMAND_LOBBY) wf_connection_release(command.newcomer);
        wf_free(command.text);
    }
}

bool wf_server_order(struct wf_server *s, const struct wf_command *command)
{
    ssize_t put;

    do
        put = write(s->commands[1], command, sizeof *command);
    while (put < 0 && errno == EINTR);
    return put == sizeof *command;
}

weft_status wf_server_connect(struct wf_server *s, int *fd)
{
    int pair[2];

    wf_fd_hold();
    if (wf_fd_keep_pair(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                        pair) != 0)
        return wf_fail(WEFT_ERR_SYSTEM, "cannot connect to the rendezvous in this process: %s",
                       kit_error_text(errno));
    if (!wf_server_order(s, &(struct wf_command){.kind = WF_COMMAND_ADOPT, .fd = pair[0]})) {
        wf_fd_close(pair[0]);
        wf_fd_close(pair[1]);
        return wf_fail(WEFT_ERR_SYSTEM, "cannot wake the rendezvous in this process: %s",
                       kit_error_text(errno));
    }
    *fd = pair[1];
    return WEFT_OK;
}

void wf_server_report_gone(struct wf_server *s, int32_t rank, const char *text)
{
    struct wf_command command = {.kind = WF_COMMAND_GONE, .rank = rank, .text = wf_strdup(text)};

    if (!wf_server_order(s, &command)) wf_free(command.text);
}

void wf_server_reap(struct wf_server *s)
{
    (void)wf_server_order(s, &(struct wf_command){.kind = WF_COMMAND_REAP});
}
