/* casting.c - the example with regions_cast and pull_cast, none of which is wrong. */
#include "casts.h"

INSTALL(install_casts())
