/* The version of this build: of `git describe`, or of `make VERSION=`. Constant strings. */
#pragma once

/* Prefixes of the names of metrics and environment variables. */
#define PRODUCT_METRICS "propeller_"
#define PRODUCT_ENVIRONMENT "PROPELLER_"

const char *version_name(void);
/* For the User-Agent header: "propeller-controller/<version>". */
const char *version_user_agent(void);
