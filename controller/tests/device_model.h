/* What the Linux device makes of a start message: its decoder and its checks. */
#pragma once

#include "common/json/json.h"

enum device_verdict { DEVICE_DROPS, DEVICE_IGNORES, DEVICE_TAKES };

/* *ret_why names the field or rule that a message is dropped for. */
enum device_verdict device_start(const cJSON *start, const char *client_id, const char **ret_why);
