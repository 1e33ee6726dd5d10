/* test_race.c GOOD HOSTILE GPU - another user swaps files and links while root loads a plugin, and
 * while a plugin opens its vendor's library.  Hostile code never runs.
 *
 * GOOD is a plugin that loads, HOSTILE one whose constructor ends the process with 66, and GPU a
 * plugin that opens what WEFT_CUDA_LIB names. */
#include "plugin/plugin.h"

#include "files.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { LOADS = 150, TRIES = 20 };
enum { USABLE = 0, REFUSED = 1, OTHERWISE = 2 };

static pid_t attacker;
static atomic_long *swaps; /* shared with the attacker */

static void clean_up(void)
{
    if (attacker > 0) kill(attacker, SIGKILL);
    if (attacker > 0) waitpid(attacker, NULL, 0);
    attacker = 0;
    remove_base();
}

/* ---- the attacker ---- */

/* Exchange two names, so that a file always exists under both. */
static void exchange(const char *one, const char *other)
{
    (void)renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

static void start_attacker(const char *one, const char *other)
{
    atomic_store(swaps, 0);
    attacker = fork();
    REQUIRE(attacker >= 0);
    if (attacker > 0) return;
    if (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0) _exit(1);
    for (;;) {
        exchange(at(one), at(other));
        atomic_fetch_add(swaps, 1);
    }
}

static void stop_attacker(void)
{
    REQUIRE(waitpid(attacker, NULL, WNOHANG) == 0); /* the attacker is still running */
    kill(attacker, SIGKILL);
    waitpid(attacker, NULL, 0);
    attacker = 0;
}

/* ---- the victim ---- */

static int load_plugin(const char *file)
{
    const struct wf_loaded *loaded = NULL;
    struct wf_verdict verdict = {0};

    for (int i = 0; i < TRIES && loaded == NULL; i++) {
        if (wf_load(file, NULL, false, &loaded, &verdict) != WEFT_OK) return OTHERWISE;
        if (loaded == NULL && verdict.reason != WEFT_BACKEND_REASON_NOT_TRUSTED) {
            fprintf(stderr, "%s\n", verdict.text);
            return OTHERWISE;
        }
    }
    return loaded != NULL ? USABLE : REFUSED;
}

static const char *gpu_plugin;
static char *own_file; /* this program; the build tree may be below directories of other users */

static int open_library(const char *file)
{
    const struct wf_loaded *loaded = NULL;
    struct wf_verdict verdict = {0};
    weft_probe answer = {.struct_size = sizeof answer};
    weft_status status = WEFT_OK;

    setenv("WEFT_CUDA_LIB", file, 1);
    if (wf_load(gpu_plugin, own_file, false, &loaded, &verdict) != WEFT_OK || loaded == NULL)
        return OTHERWISE;
    for (int i = 0; i < TRIES; i++)
        status = loaded->tables.device.probe(&answer);
    if (status == WEFT_ERR_NO_LIBRARY && strstr(weft_last_error(), "belongs to user") != NULL)
        return REFUSED;
    return USABLE; /* the library was opened, but its functions are missing */
}

/* Run each load in its own process during the attack.  Returns the number of loads that ended in
 * USABLE. */
static int attack(const char *what, const char *file, const char *one, const char *other,
                  int (*victim)(const char *))
{
    int ends[3] = {0};

    start_attacker(one, other);
    for (int i = 0; i < LOADS || atomic_load(swaps) < LOADS; i++) {
        pid_t child = fork();
        int status;

        REQUIRE(child >= 0);
        if (child == 0) _exit(victim(at(file)));
        REQUIRE(waitpid(child, &status, 0) == child);
        REQUIRE(WIFEXITED(status));
        if (WEXITSTATUS(status) == HOSTILE_RAN)
            fprintf(stderr, "%s: hostile code ran with the rights of user 0\n", what);
        REQUIRE(WEXITSTATUS(status) == USABLE || WEXITSTATUS(status) == REFUSED);
        ends[WEXITSTATUS(status)]++;
    }
    printf("%s: %d loaded, %d refused, %ld swaps\n", what, ends[USABLE], ends[REFUSED],
           atomic_load(swaps));
    stop_attacker();
    return ends[USABLE];
}

/* ---- the set-ups ---- */

static void set_up(const char *good, const char *hostile)
{
    /* A trusted directory with a link into one that every user may write to. */
    make_folder("open", 0, 0777);
    copy(good, "open/libweft_plugin_good.so", 0, 0755);
    copy(hostile, "open/hostile.so", OTHER_USER, 0755);
    make_folder("trusted", 0, 0755);
    REQUIRE(symlink("../open/libweft_plugin_good.so", at("trusted/libweft_plugin_good.so")) == 0);
    /* A sticky directory of the other user, with a file of root. */
    make_folder("sticky", OTHER_USER, 01755);
    copy(good, "sticky/libweft_plugin_good.so", 0, 0755);
    copy(hostile, "sticky/hostile.so", OTHER_USER, 0755);
    /* A link of the other user that leads to a good directory, or to a hostile one. */
    make_folder("good", 0, 0755);
    copy(good, "good/libweft_plugin_good.so", 0, 0755);
    make_folder("hostile", OTHER_USER, 0755);
    copy(hostile, "hostile/libweft_plugin_good.so", OTHER_USER, 0755);
    make_folder("links", OTHER_USER, 0755);
    REQUIRE(symlink("../good", at("links/to")) == 0);
    REQUIRE(symlink("../hostile", at("links/other")) == 0);
    /* A directory of root's in a sticky one of root's, as below /tmp. */
    make_folder("tmp", 0, 01777);
    make_folder("tmp/kept", 0, 0755);
    copy(good, "tmp/kept/libweft_plugin_good.so", 0, 0755);
    make_folder("tmp/hostile", OTHER_USER, 0755);
    copy(hostile, "tmp/hostile/libweft_plugin_good.so", OTHER_USER, 0755);
}

int main(int count, char **arguments)
{
    REQUIRE(count == 4);
    snprintf(base, sizeof base, "/tmp/weft-race-XXXXXX");
    REQUIRE(mkdtemp(base) != NULL && chmod(base, 0755) == 0);
    if (geteuid() != 0 || chown(base, OTHER_USER, OTHER_USER) != 0 || chown(base, 0, 0) != 0) {
        printf("skipped: only root can act as two users, where there are two\n");
        clean_up();
        return SKIPPED;
    }
    gpu_plugin = arguments[3];
    REQUIRE(wf_search_own_file(&own_file) == WEFT_OK);
    swaps = mmap(NULL, sizeof *swaps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(swaps != MAP_FAILED);
    set_up(arguments[1], arguments[2]);
    REQUIRE(attack("a link into a directory for everybody", "trusted/libweft_plugin_good.so",
                   "open/libweft_plugin_good.so", "open/hostile.so", load_plugin) == 0);
    REQUIRE(attack("a sticky directory of another user", "sticky/libweft_plugin_good.so",
                   "sticky/libweft_plugin_good.so", "sticky/hostile.so", load_plugin) == 0);
    (void)attack("a link of another user", "links/to/libweft_plugin_good.so", "links/to",
                 "links/other", load_plugin);
    REQUIRE(attack("a directory below a sticky one of root", "tmp/kept/libweft_plugin_good.so",
                   "tmp/kept", "tmp/hostile", load_plugin) >= LOADS);
    REQUIRE(attack("a vendor library, through a link", "trusted/libweft_plugin_good.so",
                   "open/libweft_plugin_good.so", "open/hostile.so", open_library) == 0);
    REQUIRE(attack("a vendor library in a sticky directory of another user",
                   "sticky/libweft_plugin_good.so", "sticky/libweft_plugin_good.so",
                   "sticky/hostile.so", open_library) == 0);
    clean_up();
    wf_free(own_file);
    return EXIT_SUCCESS;
}
