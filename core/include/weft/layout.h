/* layout.h - layout files: the placements of all tensors of a model.
 *
 *     mesh tp=4                             the first line
 *     # a comment
 *     *.q_proj.weight           S(0)        a pattern of names, and placements
 *     *.o_proj.weight           S(1)
 *     *                         R
 *
 * The first pattern that matches a name decides.  `*` matches any text, dots too; {q,k,v} is a list
 * of texts.  A pattern is
 * refused if an earlier one matches all its names.  Layout files are immutable; any thread may use
 * them.
 *
 * A size in placements may be a product of numbers of the model, $name:
 *
 *     *.qkv_proj.weight   B(0; $hidden_size, $num_key_value_heads*$head_dim, ...)
 *
 * Functions of file.h that meet a checkpoint take them from its config.json.
 *
 * heads0(N) after the placements says that dimension 0 consists of heads of N indices, of which no
 * rank may have a part; heads1(N) says it of dimension 1.  N is a number, or $names as above:
 *
 *     *.k_proj.weight     S(0) heads0($head_dim)
 *
 * Functions of file.h refuse a mesh that cuts a head.  Where $head_dim is not known, because the
 * checkpoint has no config.json, they warn and do not check. */
#ifndef WEFT_LAYOUT_H
#define WEFT_LAYOUT_H

#include "mesh.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The placements of tensors, by patterns of their names. */
typedef struct weft_layout_file weft_layout_file;

/* Create the layout file of TEXT, or of the file at PATH.  If there is no such file, PATH may be
 * the name of a layout that comes with weft, such as "llama".  MESH may be NULL; otherwise it
 * replaces the mesh of the text, which may be left out, and must have as many axes.  The caller
 * releases *OUT.  WEFT_ERR_PARSE: the text is malformed, or has a partial placement; the error
 * gives the line.  WEFT_ERR_NOT_FOUND: there is no such file and no such name; the error lists the
 * names. */
WEFT_API WEFT_NODISCARD weft_status weft_layout_file_parse(const char *text, const weft_mesh *mesh,
                                                           weft_layout_file **out);
WEFT_API WEFT_NODISCARD weft_status weft_layout_file_open(const char *path, const weft_mesh *mesh,
                                                          weft_layout_file **out);

/* Drop the layout file and set *LAYOUT to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_layout_file_release(weft_layout_file **layout);

/* The mesh of LAYOUT; NULL for NULL.  Borrowed. */
WEFT_API const weft_mesh *weft_layout_file_mesh(const weft_layout_file *layout);

/* Set *PLACEMENTS to the placements of the tensor NAME, such as "S(0)", as the file has them: with
 * names of numbers, which weft_checkpoint_spec replaces.  Borrowed.  WEFT_ERR_NOT_FOUND: no pattern
 * matches. */
WEFT_API WEFT_NODISCARD weft_status weft_layout_file_find(const weft_layout_file *layout,
                                                          const char *name,
                                                          const char **placements);

/* Set *DIM and *SIZE to what the line of the tensor NAME says of heads: dimension *DIM consists of
 * heads of *SIZE indices, such as "128" or "$head_dim", as the file has it.  *SIZE is "" if the
 * line says nothing; *DIM is 0 then.  Borrowed.  WEFT_ERR_NOT_FOUND: no pattern matches. */
WEFT_API WEFT_NODISCARD weft_status weft_layout_file_heads(const weft_layout_file *layout,
                                                           const char *name, int32_t *dim,
                                                           const char **size);

/* Log a warning for each line of LAYOUT that matches some of the COUNT names, if earlier lines
 * decide all of them.  [NAMES: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_layout_file_warn(const weft_layout_file *layout,
                                                          size_t count, const char *const *names);

#ifdef __cplusplus
}
#endif
#endif
