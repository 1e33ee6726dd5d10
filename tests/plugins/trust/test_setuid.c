/* test_setuid.c PRIVILEGED STATIC TELLING HOSTILE - what the environment of a set-user-ID program
 * can make weft do.
 *
 * PRIVILEGED is privileged.c over libweft, STATIC the same with the core linked into it; TELLING
 * and HOSTILE are the plugins of this folder. */
#include "files.h"

#include <sys/statvfs.h>
#include <sys/wait.h>

enum { NO_LIBRARY = 127 };

static void clean_up(void)
{
    remove_base();
}

static bool prints(const char *text)
{
    return strstr(output, text) != NULL;
}

/* Does the file system of PLACE honour set-user-ID bits? */
static bool honours_set_user_id(const char *place)
{
    struct statvfs about;

    return statvfs(place, &about) == 0 && (about.f_flag & (ST_NOSUID | ST_NOEXEC)) == 0;
}

/* A folder where set-user-ID bits count. */
static bool make_base(void)
{
    static const char *const places[] = {"/tmp", "/var/tmp", "."};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char *place = realpath(places[i], NULL);
        int length = place == NULL || !honours_set_user_id(place)
                         ? -1
                         : snprintf(base, sizeof base, "%s/weft-setuid-XXXXXX", place);

        free(place);
        if (length < 0 || (size_t)length >= sizeof base) continue;
        return mkdtemp(base) != NULL && chmod(base, 0755) == 0;
    }
    return false;
}

/* ---- running ---- */

static void set_environment(const char *backend)
{
    static const char *const libraries[] = {
        "WEFT_GLOO_LIB",        "WEFT_NCCL_LIB",    "WEFT_RCCL_LIB",     "WEFT_CUDA_LIB",
        "WEFT_HIP_LIB",         "WEFT_NVSHMEM_LIB", "WEFT_NCCL_KERNELS", "WEFT_RCCL_KERNELS",
        "WEFT_NVSHMEM_KERNELS", "WEFT_UCX_LIB"};

    clearenv();
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        setenv(libraries[i], at("plugins/libweft_plugin_hostile.so"), 1);
    setenv("WEFT_PLUGIN_PATH", at("plugins"), 1);
    setenv("WEFT_COSTS", at("no-such-costs"), 1);
    setenv("WEFT_LAUNCHER", "none", 1);
    setenv("WEFT_LOG", "debug", 1);
    if (backend != NULL) setenv("WEFT_BACKEND", backend, 1);
}

/* Run PROGRAM as USER in a hostile environment.  FOLDER may be NULL.  Returns the exit code. */
static int run(uid_t user, const char *program, const char *folder, const char *backend)
{
    int ends[2], status;
    size_t used = 0;
    ssize_t got;
    pid_t child;

    REQUIRE(pipe(ends) == 0);
    child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        set_environment(backend);
        if (setgid(user) != 0 || setuid(user) != 0) _exit(1);
        execl(program, program, folder, (char *)NULL);
        _exit(2);
    }
    close(ends[1]);
    while ((got = read(ends[0], output + used, sizeof output - 1 - used)) > 0)
        used += (size_t)got;
    output[used] = '\0';
    close(ends[0]);
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- what holds ---- */

/* Environment variables have their effect in a program without privileges. */
static void check_plain(void)
{
    REQUIRE(run(0, at("plain"), NULL, NULL) == HOSTILE_RAN);
    REQUIRE(prints("secure: 0"));
    REQUIRE(run(0, at("plain"), NULL, at("plugins/libweft_plugin_hostile.so")) == HOSTILE_RAN);
    REQUIRE(run(0, at("plain"), at("telling"), NULL) == 0);
    REQUIRE(prints("obeyed: WEFT_PLUGIN_PATH") && prints("obeyed: WEFT_COSTS"));
    REQUIRE(prints("obeyed: WEFT_CUDA_LIB") && prints("obeyed: WEFT_RCCL_KERNELS"));
}

/* No path from the environment is used. */
static void check_privileged(const char *program)
{
    REQUIRE(run(OTHER_USER, program, NULL, NULL) == 0); /* all plugins beside libweft are probed */
    REQUIRE(prints("secure: 1"));
    REQUIRE(!prints(at("plugins"))); /* neither searched nor opened */
    REQUIRE(run(OTHER_USER, program, NULL, at("plugins/libweft_plugin_hostile.so")) == 0);
    REQUIRE(prints("not trusted: WEFT_BACKEND names a file"));
    REQUIRE(prints("init fails"));
    /* A directory that the program itself names is searched.  Its plugin gets no path either. */
    REQUIRE(run(OTHER_USER, program, at("telling"), NULL) == 0);
    REQUIRE(prints("the telling plugin runs") && !prints("obeyed: "));
    REQUIRE(run(OTHER_USER, program, at("other"), NULL) == 0);
    REQUIRE(prints("not trusted: ") && !prints("the telling plugin runs"));
}

/* The program works with the plugins beside it, and without WEFT_COSTS.  Vendors' libraries obey
 * variables of their own. */
static void check_beside(const char *program)
{
    REQUIRE(run(OTHER_USER, program, NULL, "gloo-cpu") == 0);
    REQUIRE(prints("gloo-cpu.so: usable") && prints("init succeeds"));
    REQUIRE(run(OTHER_USER, program, NULL, "nccl") == 0);
    REQUIRE(prints("libcuda.so.1 is not opened, because this program runs with privileges"));
}

/* The privileges are those of the group, and the effective user is the caller. */
static void check_set_group(void)
{
    int status = run(OTHER_USER, at("set-group"), at("other"), NULL);

    if (status == NO_LIBRARY) {
        printf("not checked: a program with a group's privileges, as libweft is for root alone\n");
        return;
    }
    REQUIRE(status == 0 && prints("secure: 1"));
    REQUIRE(prints("other belongs to user 12345") && !prints("the telling plugin runs"));
}

/* A link of the other user to the program.  The directory beside the link belongs to that user. */
static void check_linked(void)
{
    REQUIRE(link(at("bin/privileged"), at("other/bin/program")) == 0);
    REQUIRE(run(OTHER_USER, at("other/bin/program"), NULL, NULL) == 0);
    REQUIRE(prints("secure: 1") && prints(at("other/lib/weft")));
    REQUIRE(prints("not trusted: ") && prints("belongs to user 12345"));
}

int main(int count, char **arguments)
{
    REQUIRE(count == 7);
    if (geteuid() != 0) {
        printf("skipped: only root can make a program that runs as another user\n");
        return SKIPPED;
    }
    if (!make_base()) {
        printf("skipped: no folder here honours set-user-ID bits\n");
        return SKIPPED;
    }
    if (chown(base, OTHER_USER, OTHER_USER) != 0 || chown(base, 0, 0) != 0) {
        printf("skipped: there is no other user in this namespace\n");
        clean_up();
        return SKIPPED;
    }
    make_folder("plugins", 0, 0755);
    copy(arguments[4], "plugins/libweft_plugin_hostile.so", 0, 0755);
    make_folder("telling", 0, 0755);
    copy(arguments[3], "telling/libweft_plugin_telling.so", 0, 0755);
    make_folder("other", OTHER_USER, 0755);
    copy(arguments[3], "other/libweft_plugin_telling.so", OTHER_USER, 0755);
    make_folder("other/bin", OTHER_USER, 0755);
    make_folder("other/lib", OTHER_USER, 0755);
    make_folder("other/lib/weft", OTHER_USER, 0755);
    copy(arguments[4], "other/lib/weft/libweft_plugin_hostile.so", OTHER_USER, 0755);
    copy(arguments[1], "plain", 0, 0755);
    copy(arguments[1], "privileged", 0, 04755);
    copy(arguments[1], "set-group", 0, 02755);
    make_folder("bin", 0, 0755);
    copy(arguments[2], "bin/privileged", 0, 04755);
    make_folder("lib", 0, 0755);
    make_folder("lib/weft", 0, 0755);
    copy(arguments[5], "lib/weft/libweft_plugin_gloo-cpu.so", 0, 0755);
    copy(arguments[6], "lib/weft/libweft_plugin_nccl.so", 0, 0755);
    check_plain();
    check_privileged(at("privileged"));
    check_privileged(at("bin/privileged"));
    check_beside(at("bin/privileged"));
    check_set_group();
    check_linked();
    clean_up();
    return EXIT_SUCCESS;
}
