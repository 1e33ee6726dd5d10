/* ranks.c - weft's own folders: one safetensors file per rank, rank-00000-of-00008.safetensors.
 *
 * The metadata of every file have the mesh (weft.mesh, "dp=2,tp=4"), the rank of the file
 * (weft.rank) and the layouts of all tensors (weft.specs, {"NAME": "BF16[4096,4096] S(0),R"}).  A
 * file has the shards of its rank, without those that are empty. */
#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool wf_is_rank_file(const char *name)
{
    return strncmp(name, "rank-", 5) == 0 && strstr(name, "-of-") != NULL;
}

/* ---- the table of layouts ---- */

struct row {
    const char *name;
    weft_spec *spec;
    int dtype;
    bool seen; /* a file has a part of it */
};

struct table {
    weft_mesh *mesh;
    char *specs; /* text of the first file */
    struct wf_arena arena;
    struct row *rows; /* sorted by name */
    size_t count, capacity;
};

static int compare_rows(const void *left, const void *right)
{
    return strcmp(((const struct row *)left)->name, ((const struct row *)right)->name);
}

/* Read "BF16[4096,4096] S(0),R". */
static weft_status parse_layout(const weft_mesh *mesh, char *text, struct row *row)
{
    char *bracket = strchr(text, '['), *blank = strchr(text, ' ');
    int64_t shape[WEFT_MAX_DIMS];
    int32_t dims;

    if (bracket == NULL || blank == NULL || blank < bracket)
        return wf_fail(WEFT_ERR_PARSE, "\"%.100s\" is not a layout like BF16[4,8] S(0)", text);
    *bracket = *blank = '\0';
    row->dtype = wf_file_dtype_find(text);
    if (row->dtype < 0) return wf_fail(WEFT_ERR_PARSE, "\"%.40s\" is not a dtype", text);
    *bracket = '[';
    WF_TRY(weft_shape_parse(bracket, &dims, shape));
    return wf_file_spec(mesh, (size_t)row->dtype, dims, shape, blank + 1, &row->spec);
}

static weft_status add_row(struct table *table, const char *name, char *layout)
{
    struct row row = {.name = name};
    weft_status status;

    WF_TRY(wf_grow(&table->rows, sizeof *table->rows, table->count, &table->capacity));
    status = parse_layout(table->mesh, layout, &row);
    if (status == WEFT_ERR_INVALID) status = WEFT_ERR_PARSE; /* the file is wrong, not the call */
    if (status != WEFT_OK) return wf_fail_context(status, "weft.specs: tensor \"%.200s\"", name);
    table->rows[table->count++] = row;
    return WEFT_OK;
}

static weft_status read_rows(struct table *table, struct wf_json_reader *json)
{
    enum wf_json_event event;
    const char *name;

    WF_TRY(wf_json_expect(json, WF_EVENT_OBJECT));
    for (;;) {
        WF_TRY(wf_json_next(json, &event));
        if (event == WF_EVENT_OBJECT_END) break;
        name = wf_arena_text(&table->arena, json->text.data, json->text.length);
        if (name == NULL) return wf_fail_memory(json->text.length + 1);
        WF_TRY(wf_json_expect(json, WF_EVENT_STRING));
        WF_TRY(add_row(table, name, json->text.data));
    }
    if (table->count > 0) qsort(table->rows, table->count, sizeof *table->rows, compare_rows);
    return wf_json_expect(json, WF_EVENT_END);
}

/* Make the table from the first file; those of the others must be the same. */
static weft_status read_table(struct table *table, const struct wf_header *header, size_t files)
{
    struct wf_json_reader json;
    weft_status status;

    WF_TRY(weft_mesh_parse(header->mesh, &table->mesh));
    if ((size_t)weft_mesh_size(table->mesh) != files)
        return wf_fail(WEFT_ERR_PARSE, "the mesh %.100s has %d ranks, but there are %zu files",
                       header->mesh, weft_mesh_size(table->mesh), files);
    table->specs = wf_strdup(header->specs);
    if (table->specs == NULL) return wf_fail_memory(strlen(header->specs) + 1);
    wf_json_reader_begin(&json, "weft.specs", header->specs, strlen(header->specs));
    status = read_rows(table, &json);
    wf_json_reader_end(&json);
    return status;
}

static weft_status check_table(const struct table *table, const struct wf_header *header)
{
    weft_mesh *mesh;
    bool same;

    WF_TRY(weft_mesh_parse(header->mesh, &mesh));
    same = mesh == table->mesh;
    weft_mesh_release(&mesh);
    if (same && strcmp(header->specs, table->specs) == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE,
                   "its %s differs from that of the first file; the files are of "
                   "different checkpoints",
                   same ? "weft.specs" : "weft.mesh");
}

static void free_table(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        weft_spec_release(&table->rows[i].spec);
    weft_mesh_release(&table->mesh);
    wf_free(table->specs);
    wf_free(table->rows);
    wf_arena_free(&table->arena);
}

/* ---- the files ---- */

/* True if another rank holds the same shard, and its file is read instead. */
static bool is_replica(const weft_spec *spec, int32_t rank)
{
    const weft_placement *placements = weft_spec_placements(spec);
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t coord[WEFT_MAX_AXES];

    if (weft_mesh_coord_of(mesh, rank, coord) != WEFT_OK) return false;
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (placements[a].kind == WEFT_PLACE_REPLICATE && coord[a] != 0) return true;
    return false;
}

static weft_status check_shard(const struct wf_piece *piece, const struct row *row, int32_t rank)
{
    struct wf_text text = {0};
    weft_shard shard;

    weft_spec_shard(row->spec, rank, &shard);
    if (piece->dtype == row->dtype && piece->dims == shard.dims &&
        (shard.dims == 0 ||
         memcmp(piece->shape, shard.shape, (size_t)shard.dims * sizeof *shard.shape) == 0))
        return WEFT_OK;
    wf_text_add(&text, "%s", wf_file_dtype(piece->dtype)->name);
    wf_shape_add_text(piece->dims, piece->shape, &text);
    wf_text_add(&text, ", but its layout gives %s", wf_file_dtype((size_t)row->dtype)->name);
    wf_shape_add_text(shard.dims, shard.shape, &text);
    return wf_fail_text(WEFT_ERR_PARSE, &text, "tensor \"%.200s\" is %s", piece->name, text.data);
}

/* Turn the pieces of a file into shards of RANK; those that another file has too are replicas. */
static weft_status place_pieces(weft_checkpoint *checkpoint, struct table *table,
                                const struct wf_header *header, int32_t rank)
{
    size_t kept = header->first;

    for (size_t i = 0; i < header->count; i++) {
        struct wf_piece piece = checkpoint->pieces[header->first + i];
        struct row key = {.name = piece.name}, *row = NULL;
        if (table->count > 0)
            row = bsearch(&key, table->rows, table->count, sizeof key, compare_rows);
        if (row == NULL)
            return wf_fail(WEFT_ERR_PARSE, "weft.specs does not have tensor \"%.200s\"",
                           piece.name);
        WF_TRY(check_shard(&piece, row, rank));
        row->seen = true;
        piece.rank = rank;
        piece.spec = row->spec;
        if (is_replica(row->spec, rank)) {
            WF_TRY(wf_checkpoint_add_replica(checkpoint, &piece));
            continue;
        }
        piece.whole = wf_arena_sizes(&checkpoint->arena, piece.dims, weft_spec_shape(row->spec));
        if (piece.whole == NULL) return wf_fail_memory(sizeof piece);
        checkpoint->pieces[kept++] = piece;
    }
    checkpoint->piece_count = kept;
    return WEFT_OK;
}

/* File POSITION of COUNT must be that of the rank at that position of the mesh. */
static weft_status find_rank(const struct table *table, const struct wf_header *header,
                             size_t position, int32_t *rank)
{
    char text[16];

    *rank = weft_mesh_rank_at(table->mesh, (int32_t)position);
    snprintf(text, sizeof text, "%d", *rank);
    if (strcmp(text, header->rank) == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_PARSE, "weft.rank is \"%.20s\"; by its name it is of rank %d",
                   header->rank, *rank);
}

static weft_status read_file(weft_checkpoint *checkpoint, struct table *table,
                             const struct wf_header *header, size_t position, size_t count)
{
    int32_t rank;

    if (header->mesh == NULL || header->rank == NULL || header->specs == NULL)
        return wf_fail(WEFT_ERR_PARSE, "its metadata lack %s",
                       header->mesh == NULL   ? "weft.mesh"
                       : header->rank == NULL ? "weft.rank"
                                              : "weft.specs");
    if (table->mesh == NULL)
        WF_TRY(read_table(table, header, count));
    else
        WF_TRY(check_table(table, header));
    WF_TRY(find_rank(table, header, position, &rank));
    return place_pieces(checkpoint, table, header, rank);
}

/* NAMES are sorted.  They must be those of all ranks of one checkpoint. */
static weft_status check_names(const weft_checkpoint *checkpoint, char **names, size_t count)
{
    const char *path = checkpoint->inputs.path;
    size_t total = strtoul(strstr(names[0], "-of-") + 4, NULL, 10);
    char wanted[64], suffix[40];

    snprintf(suffix, sizeof suffix, "-of-%05zu.safetensors", total);
    for (size_t i = 0; i < count; i++)
        if (strcmp(strstr(names[i], "-of-"), suffix) != 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s has %s and %s; the files of a checkpoint of %zu ranks end in %s",
                           path, names[0], names[i], total, suffix);
    for (size_t i = 0; i < total || i < count; i++) {
        snprintf(wanted, sizeof wanted, "rank-%05zu%s", i, suffix);
        if (i >= count || strcmp(names[i], wanted) != 0)
            return wf_fail(WEFT_ERR_NOT_FOUND, "%s/%s: this file is missing", path, wanted);
    }
    return WEFT_OK;
}

static weft_status read_files(weft_checkpoint *checkpoint, struct table *table, char **names,
                              size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct wf_header header = {0};
        weft_status status = wf_header_read(checkpoint, names[i], &header);
        if (status == WEFT_OK) {
            status = read_file(checkpoint, table, &header, i, count);
            if (status != WEFT_OK)
                wf_fail_context(status, "%s/%s", checkpoint->inputs.path, names[i]);
        }
        wf_header_free(&header);
        if (status != WEFT_OK) return status;
    }
    return WEFT_OK;
}

/* A tensor without elements is in no file. */
static weft_status add_empty(weft_checkpoint *checkpoint, const struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        struct wf_piece piece = {.name = row->name,
                                 .shape = weft_spec_shape(row->spec),
                                 .whole = weft_spec_shape(row->spec),
                                 .spec = row->spec,
                                 .rank = -1,
                                 .dtype = (uint8_t)row->dtype,
                                 .dims = (int8_t)weft_spec_dims(row->spec)};
        if (row->seen || weft_spec_elements(row->spec) > 0) continue;
        WF_TRY(wf_checkpoint_add(checkpoint, &piece));
    }
    return WEFT_OK;
}

/* The shards of a tensor must have all its elements. */
static weft_status check_tensor(const weft_checkpoint *checkpoint, const struct row *row)
{
    const weft_mesh *mesh = weft_spec_mesh(row->spec);
    const struct wf_tensor *tensor = NULL;
    size_t index, found = 0;

    if (weft_spec_elements(row->spec) == 0) return WEFT_OK;
    if (weft_checkpoint_find(checkpoint, row->name, &index) == WEFT_OK)
        tensor = &checkpoint->tensors[index];
    for (int32_t i = 0; i < weft_mesh_size(mesh); i++) { /* pieces are in the order of the files */
        int32_t rank = weft_mesh_rank_at(mesh, i);
        weft_shard shard;
        weft_spec_shard(row->spec, rank, &shard);
        if (shard.elements == 0 || is_replica(row->spec, rank)) continue;
        if (tensor == NULL || found == tensor->count ||
            checkpoint->pieces[tensor->first + found].rank != rank)
            return wf_fail(WEFT_ERR_PARSE, "%s/%s lacks tensor \"%s\"", checkpoint->inputs.path,
                           checkpoint->inputs.list[i]->name, row->name);
        found++;
    }
    return WEFT_OK;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

weft_status wf_open_ranks(weft_checkpoint *checkpoint, char **names, size_t count)
{
    struct table table = {0};
    weft_status status;

    checkpoint->format = WEFT_FILE_RANKS;
    if (count > 0) qsort(names, count, sizeof *names, compare_names);
    WF_TRY(check_names(checkpoint, names, count));
    status = read_files(checkpoint, &table, names, count);
    if (status == WEFT_OK) status = add_empty(checkpoint, &table);
    if (status == WEFT_OK) status = wf_checkpoint_settle(checkpoint);
    for (size_t i = 0; i < table.count && status == WEFT_OK; i++)
        status = check_tensor(checkpoint, &table.rows[i]);
    if (status == WEFT_OK) checkpoint->mesh = weft_mesh_retain(table.mesh);
    free_table(&table);
    return status;
}
