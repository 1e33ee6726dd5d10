/* elf.c - reads a plugin's ELF headers before the dynamic linker does.  dlopen calls a file for
 * another machine "cannot open shared object file", and crashes with a bus error on a truncated
 * file.  Both are common, so they get a clear message. */
#include "plugin.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef EM_LOONGARCH /* since glibc 2.36 */
#define EM_LOONGARCH 258
#endif

#if UINTPTR_MAX > UINT32_MAX
typedef Elf64_Ehdr elf_header;
typedef Elf64_Phdr elf_segment;
#define OWN_CLASS ELFCLASS64
#else
typedef Elf32_Ehdr elf_header;
typedef Elf32_Phdr elf_segment;
#define OWN_CLASS ELFCLASS32
#endif

static const struct {
    unsigned machine;
    const char *name;
} machines[] = {
    {EM_X86_64, "x86-64"}, {EM_AARCH64, "aarch64"}, {EM_386, "x86"},   {EM_ARM, "arm"},
    {EM_PPC64, "ppc64"},   {EM_RISCV, "riscv"},     {EM_S390, "s390"}, {EM_LOONGARCH, "loongarch"},
};

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define OWN_MACHINE EM_PPC64
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#elif defined(__s390x__)
#define OWN_MACHINE EM_S390
#elif defined(__loongarch__)
#define OWN_MACHINE EM_LOONGARCH
#else
#error "add this machine's ELF number"
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OWN_ORDER ELFDATA2LSB
#else
#define OWN_ORDER ELFDATA2MSB
#endif

struct architecture {
    unsigned machine, elf_class, order;
};

static void describe(struct architecture a, char *out, size_t bytes)
{
    const char *name = NULL;
    char number[32];

    for (size_t i = 0; i < WF_COUNT(machines); i++)
        if (machines[i].machine == a.machine) name = machines[i].name;
    snprintf(number, sizeof number, "ELF machine %u", a.machine);
    snprintf(out, bytes, "%s, %s-bit, %s-endian", name != NULL ? name : number,
             a.elf_class == ELFCLASS64 ? "64" : "32", a.order == ELFDATA2LSB ? "little" : "big");
}

/* e_machine, in the file's own byte order. */
static unsigned file_machine(const unsigned char *bytes, unsigned order)
{
    size_t at = offsetof(elf_header, e_machine);

    return order == ELFDATA2MSB ? (unsigned)bytes[at] << 8 | bytes[at + 1]
                                : (unsigned)bytes[at + 1] << 8 | bytes[at];
}

static bool same_architecture(const unsigned char *bytes, const char *file,
                              struct wf_verdict *verdict)
{
    struct architecture own = {OWN_MACHINE, OWN_CLASS, OWN_ORDER};
    struct architecture its = {file_machine(bytes, bytes[EI_DATA]), bytes[EI_CLASS],
                               bytes[EI_DATA]};
    char own_text[64], its_text[64];

    if (own.machine == its.machine && own.elf_class == its.elf_class && own.order == its.order)
        return true;
    describe(own, own_text, sizeof own_text);
    describe(its, its_text, sizeof its_text);
    return wf_refuse(verdict, WEFT_BACKEND_REASON_WRONG_ARCHITECTURE,
                     "%s is built for %s; this process is %s", file, its_text, own_text);
}

/* True if the file contains all bytes that the loader would map. */
static bool segments_complete(int fd, const elf_header *header, const char *file, uint64_t bytes,
                              struct wf_verdict *verdict)
{
    if (header->e_phentsize != sizeof(elf_segment) || header->e_phnum == 0)
        return wf_refuse(verdict, WEFT_BACKEND_REASON_NOT_READABLE,
                         "%s has %u program headers of %u bytes; expected headers of %zu bytes",
                         file, header->e_phnum, header->e_phentsize, sizeof(elf_segment));
    for (unsigned i = 0; i < header->e_phnum; i++) {
        elf_segment segment;
        uint64_t at = header->e_phoff + (uint64_t)i * sizeof segment;

        if (at > INT64_MAX ||
            pread(fd, &segment, sizeof segment, (off_t)at) != (ssize_t)sizeof segment)
            return wf_refuse(verdict, WEFT_BACKEND_REASON_NOT_READABLE,
                             "%s has %llu bytes and its program headers go beyond them: it is cut "
                             "short",
                             file, (unsigned long long)bytes);
        if (segment.p_type == PT_LOAD &&
            (segment.p_filesz > bytes || segment.p_offset > bytes - segment.p_filesz))
            return wf_refuse(verdict, WEFT_BACKEND_REASON_NOT_READABLE,
                             "%s has %llu bytes, but a segment of %llu at %llu: it is cut short",
                             file, (unsigned long long)bytes, (unsigned long long)segment.p_filesz,
                             (unsigned long long)segment.p_offset);
    }
    return true;
}

bool wf_elf_check(int fd, const char *file, struct wf_verdict *verdict)
{
    unsigned char bytes[sizeof(elf_header)] = {0};
    elf_header header;
    struct stat info;
    ssize_t length = pread(fd, bytes, sizeof bytes, 0);

    if (length < (ssize_t)sizeof bytes || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return wf_refuse(
            verdict, WEFT_BACKEND_REASON_NOT_READABLE,
            "%s is not an ELF file: it begins with %02x %02x %02x %02x; expected 7f 45 4c 46", file,
            bytes[0], bytes[1], bytes[2], bytes[3]);
    if (!same_architecture(bytes, file, verdict)) return false;
    memcpy(&header, bytes, sizeof header);
    if (header.e_type != ET_DYN)
        return wf_refuse(verdict, WEFT_BACKEND_REASON_NOT_READABLE,
                         "%s is ELF type %u; expected a shared object, type %d", file,
                         header.e_type, ET_DYN);
    if (fstat(fd, &info) != 0 || info.st_size < 0)
        return wf_refuse(verdict, WEFT_BACKEND_REASON_NOT_READABLE, "%s: its size is unknown",
                         file);
    return segments_complete(fd, &header, file, (uint64_t)info.st_size, verdict);
}
