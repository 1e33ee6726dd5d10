/* exports.c - reads the exported symbols of a shared object from its file. */
#include "process.h"

#include "base/base.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file in memory. */
struct file {
    const uint8_t *bytes;
    uint64_t size;
};

/* The address of COUNT entries of SIZE bytes at OFFSET.  NULL if they are misaligned or outside
 * the file. */
static const void *entries(const struct file *file, uint64_t offset, uint64_t count, uint64_t size)
{
    if (offset > file->size || count > (file->size - offset) / size) return NULL;
    if (size > 1 && offset % _Alignof(ElfW(Addr)) != 0) return NULL;
    return file->bytes + offset;
}

/* Symbols of the linker and of the compilers' run-time libraries. */
static bool is_expected(const char *name)
{
    static const char *const names[] = {
        "weft_plugin_entry", "_init", "_fini", "_edata", "_end", "_ftext", "_fdata", "_fbss"};

    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) return true;
    return strncmp(name, "__", 2) == 0;
}

static bool is_exported(const ElfW(Sym) * symbol)
{
    uint32_t binding = symbol->st_info >> 4, visibility = symbol->st_other & 3;

    return symbol->st_shndx != SHN_UNDEF && binding != STB_LOCAL &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

/* Write the first unexpected name of the dynamic symbol table SECTION to OUT. */
static bool find_in(const struct file *file, const ElfW(Shdr) * sections, uint64_t section_count,
                    const ElfW(Shdr) * section, char *out, size_t capacity)
{
    const ElfW(Shdr) *strings =
        section->sh_link < section_count ? &sections[section->sh_link] : NULL;
    uint64_t count = section->sh_size / sizeof(ElfW(Sym));
    const ElfW(Sym) *symbols = entries(file, section->sh_offset, count, sizeof *symbols);
    const char *text;

    if (strings == NULL || symbols == NULL) return false;
    text = entries(file, strings->sh_offset, strings->sh_size, 1);
    if (text == NULL || strings->sh_size == 0 || text[strings->sh_size - 1] != '\0') return false;
    for (uint64_t i = 0; i < count; i++) {
        if (symbols[i].st_name >= strings->sh_size || !is_exported(&symbols[i])) continue;
        if (is_expected(text + symbols[i].st_name)) continue;
        snprintf(out, capacity, "%s", text + symbols[i].st_name);
        return true;
    }
    return false;
}

static bool find(const struct file *file, char *out, size_t capacity)
{
    const ElfW(Ehdr) *header = entries(file, 0, 1, sizeof *header);
    const ElfW(Shdr) * sections;

    if (header == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_shentsize != sizeof *sections)
        return false;
    sections = entries(file, header->e_shoff, header->e_shnum, sizeof *sections);
    for (uint64_t i = 0; sections != NULL && i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_DYNSYM &&
            find_in(file, sections, header->e_shnum, &sections[i], out, capacity))
            return true;
    return false;
}

bool kit_exports_more(const char *path, char *out, size_t capacity)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    void *mapped;
    bool found = false;

    if (descriptor < 0) return false;
    if (fstat(descriptor, &status) == 0 && status.st_size > 0) {
        mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (mapped != MAP_FAILED) {
            found = find(&(struct file){mapped, (uint64_t)status.st_size}, out, capacity);
            munmap(mapped, (size_t)status.st_size);
        }
    }
    close(descriptor);
    return found;
}
