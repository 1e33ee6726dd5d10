#include "plugin/plugin.h"
#include "support/folder.h"
#include "support/suite.h"

#include <elf.h>
#include <fcntl.h>

static const char good[] = TEST_PLUGINS "/good/libweft_plugin_good.so";
static struct wf_verdict verdict;

static bool passes(const char *file)
{
    int fd = open(file, O_RDONLY);
    bool good_elf;

    ck_assert_int_ge(fd, 0);
    verdict = (struct wf_verdict){0};
    good_elf = wf_elf_check(fd, file, &verdict);
    close(fd);
    return good_elf;
}

/* The good plugin with BYTES written over it at OFFSET. */
static bool passes_with(size_t offset, const void *bytes, size_t count)
{
    struct folder folder = folder_create();
    const char *path = folder_copy(&folder, "x", good, SIZE_MAX);
    FILE *file = fopen(path, "r+b");
    bool passed;

    ck_assert_int_eq(fseek(file, (long)offset, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    fclose(file);
    passed = passes(path);
    folder_remove(&folder);
    return passed;
}

TEST(a_shared_object_of_this_machine_passes)
{
    ck_assert_msg(passes(good), "%s", verdict.text);
}

TEST(another_machine_is_named_on_both_sides)
{
    uint16_t s390 = EM_S390, unknown = 0xfe01;

    ck_assert(!passes_with(offsetof(Elf64_Ehdr, e_machine), &s390, sizeof s390));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_WRONG_ARCHITECTURE);
    ck_assert_ptr_nonnull(strstr(verdict.text, "is built for s390, 64-bit"));
    ck_assert_ptr_nonnull(strstr(verdict.text, "this process is "));
    ck_assert(!passes_with(offsetof(Elf64_Ehdr, e_machine), &unknown, sizeof unknown));
    ck_assert_ptr_nonnull(strstr(verdict.text, "ELF machine 65025"));
}

TEST(another_width_or_byte_order_is_another_machine)
{
    uint8_t narrow = ELFCLASS32, swapped = ELFDATA2MSB;

    ck_assert(!passes_with(EI_CLASS, &narrow, 1));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_WRONG_ARCHITECTURE);
    ck_assert_ptr_nonnull(strstr(verdict.text, "32-bit"));
    ck_assert(!passes_with(EI_DATA, &swapped, 1));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_WRONG_ARCHITECTURE);
    ck_assert_ptr_nonnull(strstr(verdict.text, "big-endian"));
}

TEST(a_file_that_is_not_elf_is_refused)
{
    static const char script[] = "#!/bin/sh\n"
                                 "echo this script is long enough to be an ELF header, I hope\n";
    struct folder folder = folder_create();

    ck_assert(!passes(folder_write(&folder, "empty", "", 0)));
    ck_assert(!passes(folder_write(&folder, "short", "\177ELF", 4)));
    ck_assert(!passes(folder_write(&folder, "script", script, sizeof script - 1)));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_READABLE);
    ck_assert_ptr_nonnull(strstr(verdict.text, "begins with 23 21 2f 62; expected 7f 45 4c 46"));
    folder_remove(&folder);
}

TEST(an_object_file_is_not_a_shared_object)
{
    uint16_t relocatable = ET_REL;

    ck_assert(!passes_with(offsetof(Elf64_Ehdr, e_type), &relocatable, sizeof relocatable));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_READABLE);
}

/* The offset of the last byte that the dynamic linker maps. */
static size_t mapped_end(const char *file)
{
    FILE *stream = fopen(file, "rb");
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    size_t end = 0;

    ck_assert_uint_eq(fread(&header, sizeof header, 1, stream), 1);
    for (int i = 0; i < header.e_phnum; i++) {
        fseek(stream, (long)(header.e_phoff + (size_t)i * sizeof segment), SEEK_SET);
        ck_assert_uint_eq(fread(&segment, sizeof segment, 1, stream), 1);
        if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > end)
            end = segment.p_offset + segment.p_filesz;
    }
    fclose(stream);
    return end;
}

/* dlopen of such a file may raise SIGBUS. */
TEST(a_file_that_is_cut_short_is_refused_at_every_length)
{
    struct folder folder = folder_create();
    size_t end = mapped_end(good);

    for (size_t length = 0; length < end; length += 997)
        ck_assert_msg(!passes(folder_copy(&folder, "cut", good, length)), "%zu bytes", length);
    ck_assert(!passes(folder_copy(&folder, "cut", good, end - 1)));
    ck_assert_ptr_nonnull(strstr(verdict.text, "cut short"));
    ck_assert(passes(folder_copy(&folder, "cut", good, end)));
    ck_assert(!passes(folder_copy(&folder, "cut", good, 80)));
    ck_assert_ptr_nonnull(strstr(verdict.text, "cut short"));
    folder_remove(&folder);
}

TEST(program_headers_that_lead_nowhere_are_refused)
{
    uint64_t far = UINT64_MAX - 8;
    uint16_t none = 0, odd = 7;

    ck_assert(!passes_with(offsetof(Elf64_Ehdr, e_phoff), &far, sizeof far));
    ck_assert(!passes_with(offsetof(Elf64_Ehdr, e_phnum), &none, sizeof none));
    ck_assert(!passes_with(offsetof(Elf64_Ehdr, e_phentsize), &odd, sizeof odd));
    ck_assert_uint_eq(verdict.reason, WEFT_BACKEND_REASON_NOT_READABLE);
}
