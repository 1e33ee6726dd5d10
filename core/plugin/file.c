/* file.c - checks whether a file may be opened as a plugin.  Opening runs its code with this
 * program's privileges.  So only users who can change this program may be able to change the file.
 */
#include "plugin.h"
#undef wf_refuse

#include "kit/trust.h"

#include <stdio.h>

bool wf_refuse(struct wf_verdict *verdict, enum weft_backend_reason reason, const char *format, ...)
{

    verdict->reason = (uint32_t)reason;
    KIT_PRINT_REST(verdict->text, format);
    return false;
}

bool wf_file_open(const char *file, const char *own_file, bool secure, struct wf_trusted *out,
                  struct wf_verdict *verdict)
{
    static const enum weft_backend_reason reasons[] = {
        [WF_TRUST_MISSING] = WEFT_BACKEND_REASON_NOT_FOUND,
        [WF_TRUST_UNREADABLE] = WEFT_BACKEND_REASON_NOT_READABLE,
        [WF_TRUST_REFUSED] = WEFT_BACKEND_REASON_NOT_TRUSTED,
    };
    struct wf_trust trust = wf_trust_of(own_file, secure);
    enum wf_trust_answer answer = wf_trust_open(file, &trust, out);

    if (answer == WF_TRUSTED) return true;
    return wf_refuse(verdict, reasons[answer], "%s", out->why);
}
