#include "common/base/version.h"

/* The only object that is made with the version: the Makefile makes it anew when that changes. */
const char *version_name(void)
{
    return PROPELLER_VERSION;
}

const char *version_user_agent(void)
{
    return "propeller-controller/" PROPELLER_VERSION;
}
