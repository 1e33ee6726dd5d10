/* The files that may run: the walk of core/kit/trust.c.  Another user is simulated by another
 * effective user of the walk, so most tests do not need root. */
#include "kit/trust.h"
#include "support/folder.h"
#include "support/open_files.h"
#include "support/suite.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <sys/xattr.h>

static struct folder folder;
static struct wf_trusted got;
static char directory[PATH_MAX], file[PATH_MAX];

/* FOLDER/upper/lower/file; the folder of the tests is below /tmp, which is sticky. */
static void set_up(void)
{
    char upper[PATH_MAX];

    folder = folder_create();
    ck_assert_int_eq(chmod(folder.path, 0755), 0);
    snprintf(upper, sizeof upper, "%s/upper", folder.path);
    snprintf(directory, sizeof directory, "%s/upper/lower", folder.path);
    ck_assert_int_eq(mkdir(upper, 0755), 0);
    ck_assert_int_eq(mkdir(directory, 0755), 0);
    snprintf(file, sizeof file, "%s", folder_write(&folder, "upper/lower/file", "x", 1));
    ck_assert_int_eq(chmod(upper, 0755), 0);
    ck_assert_int_eq(chmod(directory, 0755), 0);
}

static enum wf_trust_answer ask_as(const char *path, const struct wf_trust *trust)
{
    enum wf_trust_answer answer = wf_trust_open(path, trust, &got);

    ck_assert((answer == WF_TRUSTED) == (got.fd >= 0));
    ck_assert((answer == WF_TRUSTED) == (got.why[0] == '\0'));
    if (got.fd >= 0) close(got.fd);
    return answer;
}

static enum wf_trust_answer ask(const char *path)
{
    struct wf_trust trust = wf_trust_of(NULL, false);

    return ask_as(path, &trust);
}

/* Root may, except in a namespace without other users. */
static bool may_give_away(void)
{
    return geteuid() == 0 && chown(file, 4711, 4711) == 0 && chown(file, 0, 0) == 0;
}

/* A user who owns no file here. */
static struct wf_trust other_user(void)
{
    return (struct wf_trust){.user = 4711, .maker = 4711, .user_counts = true};
}

static void expect_refusal(enum wf_trust_answer answer, const char *words)
{
    ck_assert_msg(answer == WF_TRUST_REFUSED, "%d: %s", (int)answer, got.why);
    ck_assert_msg(strstr(got.why, words) != NULL, "\"%s\" in: %s", words, got.why);
}

static void change_mode(const char *path, mode_t mode)
{
    ck_assert_int_eq(chmod(path, mode), 0);
}

TEST(our_own_file_in_our_own_directory_below_tmp_is_trusted)
{
    set_up();
    ck_assert_msg(ask(file) == WF_TRUSTED, "%s", got.why);
    ck_assert_str_eq(got.path, file);
    folder_remove(&folder);
}

TEST(links_are_resolved_once_and_the_answer_has_none)
{
    char link[PATH_MAX], relative[PATH_MAX];

    set_up();
    snprintf(link, sizeof link, "%s", folder_path(&folder, "link"));
    ck_assert_int_eq(symlink("upper/lower", link), 0);
    snprintf(relative, sizeof relative, "%s/../upper/./lower//file", folder_path(&folder, "upper"));
    ck_assert_int_eq(ask(relative), WF_TRUSTED);
    ck_assert_str_eq(got.path, file);
    ck_assert_int_eq(ask(folder_path(&folder, "link/file")), WF_TRUSTED);
    ck_assert_str_eq(got.path, file);
    folder_remove(&folder);
}

TEST(what_is_missing_is_not_a_refusal)
{
    set_up();
    ck_assert_int_eq(ask(folder_path(&folder, "upper/none")), WF_TRUST_MISSING);
    ck_assert_int_eq(ask(folder_path(&folder, "none/file")), WF_TRUST_MISSING);
    ck_assert_int_eq(symlink("nowhere", folder_path(&folder, "dangling")), 0);
    ck_assert_int_eq(ask(folder_path(&folder, "dangling")), WF_TRUST_MISSING);
    ck_assert_int_eq(symlink("circle", folder_path(&folder, "circle")), 0);
    ck_assert_int_eq(ask(folder_path(&folder, "circle")), WF_TRUST_UNREADABLE);
    ck_assert_int_eq(ask(directory), WF_TRUST_UNREADABLE);
    ck_assert_int_eq(ask("/"), WF_TRUST_UNREADABLE);
    ck_assert_int_eq(ask(""), WF_TRUST_MISSING);
    folder_remove(&folder);
}

/* dlopen opens another file than the examined one if the path contains $LIB or $ORIGIN. */
TEST(a_path_that_the_dynamic_linker_expands_is_refused)
{
    set_up();
    ck_assert_int_eq(mkdir(folder_path(&folder, "$LIB"), 0755), 0);
    expect_refusal(ask(folder_write(&folder, "$LIB/file", "x", 1)), "has a $");
    folder_remove(&folder);
}

TEST(every_directory_up_to_the_root_is_judged)
{
    const char *parts[] = {"upper/lower/file", "upper/lower", "upper", "."};
    char path[PATH_MAX], name[PATH_MAX + 32];

    set_up();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(path, sizeof path, "%s", folder_path(&folder, parts[i]));
        change_mode(path, 0757);
        snprintf(name, sizeof name, "%.*s belongs to user %u and has mode 0757",
                 (int)(strlen(path) - (i == 3 ? 2 : 0)), path, geteuid());
        expect_refusal(ask(file), name);
        ck_assert_ptr_nonnull(strstr(got.why, "every user may"));
        ck_assert_ptr_nonnull(strstr(got.why, "chmod go-w"));
        change_mode(path, 0755);
    }
    ck_assert_int_eq(ask(file), WF_TRUSTED);
    folder_remove(&folder);
}

TEST(a_link_into_a_directory_that_anybody_may_change_is_refused)
{
    char words[2 * PATH_MAX];

    set_up();
    ck_assert_int_eq(mkdir(folder_path(&folder, "safe"), 0755), 0);
    ck_assert_int_eq(symlink("../upper/lower/file", folder_path(&folder, "safe/file")), 0);
    change_mode(directory, 0777);
    expect_refusal(ask(folder_path(&folder, "safe/file")), directory);
    snprintf(words, sizeof words, "safe/file leads to %s", file);
    ck_assert_msg(strstr(got.why, words) != NULL, "%s", got.why);
    folder_remove(&folder);
}

TEST(a_sticky_directory_serves_on_the_way_but_not_as_the_last)
{
    set_up();
    change_mode(folder_path(&folder, "upper"), 01777);
    ck_assert_msg(ask(file) == WF_TRUSTED, "%s", got.why);
    change_mode(directory, 01777);
    expect_refusal(ask(file), "the sticky bit protects existing files only");
    folder_remove(&folder);
}

TEST(a_sticky_directory_of_another_user_is_refused)
{
    struct wf_trust other = other_user();

    set_up();
    if (may_give_away()) {
        ck_assert_int_eq(chown(folder_path(&folder, "upper"), 4711, 4711), 0);
        change_mode(folder_path(&folder, "upper"), 01755);
        expect_refusal(ask(file), "upper belongs to user 4711 and has mode 1755");
        ck_assert_msg(ask_as(file, &other) == WF_TRUSTED, "%s", got.why);
    } else if (geteuid() != 0) {
        change_mode(folder.path, 01755);
        expect_refusal(ask_as(file, &other), "has mode 1755");
        ck_assert_ptr_nonnull(strstr(got.why, "wanted is root or user 4711 as owner"));
    }
    folder_remove(&folder);
}

/* User 4711 has the group 4711, which no database contains. */
TEST(a_private_group_may_write_and_no_other)
{
    struct wf_trust user = other_user(), secure = user;

    secure.secure = true;
    set_up();
    if (!may_give_away()) {
        printf("not checked: only root may give files to another group\n");
    } else {
        ck_assert_int_eq(chown(directory, 4711, 4711), 0);
        change_mode(directory, 02775);
        ck_assert_msg(ask_as(file, &user) == WF_TRUSTED, "%s", got.why);
        expect_refusal(ask_as(file, &secure), "group 4711 may replace its files");
        ck_assert_ptr_nonnull(strstr(got.why, "chmod g-w"));
        ck_assert_int_eq(chown(directory, 4711, 4712), 0);
        change_mode(directory, 0775);
        expect_refusal(ask_as(file, &user), "group 4712 may replace its files");
        ck_assert_int_eq(chown(directory, 0, 4711), 0); /* root's, for user 4711 */
        expect_refusal(ask_as(file, &user), "group 4711 may replace its files");
        change_mode(directory, 0755);
        ck_assert_int_eq(chown(file, 4711, 4711), 0);
        change_mode(file, 0664);
        ck_assert_msg(ask_as(file, &user) == WF_TRUSTED, "%s", got.why);
        ck_assert_int_eq(chown(file, 4711, 4712), 0);
        expect_refusal(ask_as(file, &user), "group 4712 may change it");
    }
    folder_remove(&folder);
}

static bool has_others_as_primary(gid_t group)
{
    const struct passwd *entry;
    bool others = false;

    setpwent();
    while ((entry = getpwent()) != NULL)
        if (entry->pw_gid == group && entry->pw_uid != group) others = true;
    endpwent();
    return others;
}

/* Containers run users in group 0.  Group 65534, which distributions call nogroup, has several
 * members. */
TEST(a_group_that_is_the_primary_one_of_others_is_not_private)
{
    struct wf_trust nobody = other_user();

    nobody.user = nobody.maker = 65534;
    set_up();
    if (!may_give_away()) {
        printf("not checked: only root may give files to another group\n");
    } else {
        change_mode(file, 0775);
        expect_refusal(ask(file), "group 0 may change it");
        ck_assert_int_eq(chown(file, 65534, 65534), 0);
        change_mode(file, 0775);
        if (has_others_as_primary(65534))
            expect_refusal(ask_as(file, &nobody), "group 65534 may change it");
        else
            printf("not checked: no user has group 65534 as primary group\n");
    }
    folder_remove(&folder);
}

/* The permissions of a named user in an access control list appear as the group's. */
TEST(an_access_control_list_is_not_a_private_group)
{
    struct {
        uint32_t version;
        struct {
            uint16_t tag, permissions;
            uint32_t id;
        } entries[5];
    } list = {2,
              {{1, 7, UINT32_MAX},
               {2, 7, 4711},
               {4, 5, UINT32_MAX},
               {16, 7, UINT32_MAX},
               {32, 5, UINT32_MAX}}};

    set_up();
    if (setxattr(directory, "system.posix_acl_access", &list, sizeof list, 0) != 0)
        printf("not checked: no access control lists here: %s\n", strerror(errno));
    else
        expect_refusal(ask(file), "mode 0775");
    folder_remove(&folder);
}

TEST(in_a_privileged_program_its_caller_is_not_trusted)
{
    struct wf_trust trust = wf_trust_of(NULL, true);

    set_up();
    ck_assert(trust.secure && !trust.user_counts); /* the effective user is the caller */
    if (geteuid() == 0)
        ck_assert_int_eq(ask_as(file, &trust), WF_TRUSTED); /* root's */
    else
        expect_refusal(ask_as(file, &trust), "wanted is root as owner");
    folder_remove(&folder);
}

TEST(the_owner_of_the_object_that_asks_is_trusted_where_its_path_is)
{
    struct wf_trust trust;

    set_up();
    if (!may_give_away()) {
        printf("not checked: only root may give files away\n");
    } else {
        char library[PATH_MAX];

        snprintf(library, sizeof library, "%s", folder_write(&folder, "upper/lib", "x", 1));
        ck_assert_int_eq(chown(library, 4711, 4711), 0);
        ck_assert_int_eq(chown(directory, 4711, 4711), 0);
        expect_refusal(ask(file), "lower belongs to user 4711");
        trust = wf_trust_of(library, false);
        ck_assert_uint_eq(trust.maker, 4711);
        ck_assert_msg(ask_as(file, &trust) == WF_TRUSTED, "%s", got.why);
        change_mode(folder_path(&folder, "upper"), 0777);
        trust = wf_trust_of(library, false); /* any user can have put it there */
        ck_assert_uint_eq(trust.maker, 0);
    }
    folder_remove(&folder);
}

/* A checkout of another user that root builds in, in a container; one in a folder of a project. */
TEST(a_directory_above_the_object_that_asks_may_be_anybody_s)
{
    struct wf_trust trust = other_user();
    char library[PATH_MAX];

    set_up();
    if (!may_give_away()) {
        printf("not checked: only root may give files away\n");
    } else {
        snprintf(library, sizeof library, "%s", folder_write(&folder, "upper/lib", "x", 1));
        ck_assert_int_eq(chown(folder_path(&folder, "upper"), 4712, 4712), 0);
        expect_refusal(ask_as(file, &trust), "upper belongs to user 4712");
        trust.own_file = library;
        ck_assert_msg(ask_as(file, &trust) == WF_TRUSTED, "%s", got.why);
        ck_assert_int_eq(chown(folder_path(&folder, "upper"), 4712, 4713), 0);
        change_mode(folder_path(&folder, "upper"), 02775);
        ck_assert_msg(ask_as(file, &trust) == WF_TRUSTED, "%s", got.why);
        change_mode(folder_path(&folder, "upper"), 0777);
        expect_refusal(ask_as(file, &trust), "upper belongs to user 4712 and has mode 0777");
        change_mode(folder_path(&folder, "upper"), 0755);
        trust.secure = true;
        expect_refusal(ask_as(file, &trust), "upper belongs to user 4712");
        trust.secure = false;
        ck_assert_int_eq(chown(directory, 4712, 4712), 0);
        expect_refusal(ask_as(file, &trust), "lower belongs to user 4712");
        trust.own_file = folder_path(&folder, "upper/lower-too/lib"); /* only looks alike */
        expect_refusal(ask_as(file, &trust), "lower belongs to user 4712");
    }
    folder_remove(&folder);
}

TEST(no_answer_leaves_a_file_open)
{
    struct wf_trust other = other_user();
    int before;

    set_up();
    before = open_files();
    ck_assert_int_eq(ask(file), WF_TRUSTED);
    (void)ask_as(file, &other);
    (void)ask(directory);
    (void)ask(folder_path(&folder, "upper/none"));
    change_mode(file, 0666);
    ck_assert_int_eq(ask(file), WF_TRUST_REFUSED);
    change_mode(directory, 0777);
    ck_assert_int_eq(ask(file), WF_TRUST_REFUSED);
    ck_assert_int_eq(open_files(), before);
    folder_remove(&folder);
}
