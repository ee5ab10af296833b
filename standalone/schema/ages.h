/* How long ago something was, as kubectl shows it. */
#pragma once

#include <stdint.h>

#include "common/base/arena.h"

/* k8s.io/apimachinery's duration.HumanDuration: "5s", "3m20s", "2d4h"; "<invalid>" for more than a
 * second in the future. */
const char *age_text(struct arena *arena, int64_t us);
