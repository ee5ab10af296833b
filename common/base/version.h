/* Which build this is: what `git describe` said, or what `make VERSION=` was told. Constant strings. */
#pragma once

const char *version_name(void);
/* For the User-Agent header: "propeller-controller/<version>". */
const char *version_user_agent(void);
