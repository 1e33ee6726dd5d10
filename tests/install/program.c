#include <stdio.h>
#include <weft/weft.h>

int main(void)
{
    printf("weft %s: a timeout is \"%s\"\n", weft_version(), weft_status_text(WEFT_ERR_TIMEOUT));
    return 0;
}
