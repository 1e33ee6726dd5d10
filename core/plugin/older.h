/* older.h - the tables of earlier minors of the plugin ABI, which weft still takes.
 *
 * A minor that appends to a table adds a row for the table as it was: X(TABLE, APPENDED,
 * SIGNATURE), the first entry that the minor appended, and the fingerprint of the table
 * before.  1.0 is the first version, so there are none. */
#ifndef WEFT_PLUGIN_OLDER_H
#define WEFT_PLUGIN_OLDER_H

#define WF_OLDER_DEVICE(X)
#define WF_OLDER_COMM(X)
#define WF_OLDER_SYMM(X)
#define WF_OLDER_KERNEL(X)

#endif
