/* shared.h - files that come with weft: layouts and rules. */
#ifndef WEFT_CLI_SHARED_H
#define WEFT_CLI_SHARED_H

#include "common/cli.h"

/* The path of the file NAME, which a user gave.  If no such file exists and NAME has no slash, it
 * is NAME or NAME.SUFFIX of the folder KIND ("layouts", "rules") that comes with weft, if that
 * exists; otherwise the error lists that folder.  The caller frees *OUT. */
weft_status cli_shared_path(const char *name, const char *kind, const char *suffix, char **out);

#endif
