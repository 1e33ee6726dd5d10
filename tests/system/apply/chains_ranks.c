/* Random chains of operators and random calls with phases, on ranks that are processes:
 *
 *     weft run -n 4 chains_ranks */
#include "chains.h"
#include "phase_cases.h"
#include "support/seed.h"
#include "weft/apply.h"

enum { CHAINS = 30, CASES = 105 };

int main(void)
{
    weft_context *context;
    weft_status status;

    if (weft_init(NULL, &context) != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error());
        return EXIT_FAILURE;
    }
    test_seed_begin("chains_ranks");
    status = run_chains(context, test_cases(CHAINS));
    if (status == WEFT_OK)
        status = run_phase_cases(&(struct phase_place){.context = context}, test_cases(CASES));
    if (status != WEFT_OK) fprintf(stderr, "rank %d: %s\n", weft_rank(context), weft_last_error());
    weft_context_release(&context);
    return status == WEFT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
