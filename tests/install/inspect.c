/* Open a checkpoint that is not there: a program of libweft_file, built against an installed weft.
 */
#include <stdio.h>
#include <weft/file.h>

int main(void)
{
    weft_checkpoint *checkpoint = NULL;
    weft_status status = weft_checkpoint_open("/nonexistent/model.safetensors", &checkpoint);

    printf("%s: %s\n", weft_status_name(status), weft_last_error());
    weft_checkpoint_close(&checkpoint);
    return 0;
}
