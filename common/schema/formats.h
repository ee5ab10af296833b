/* Formats of strings, as go-openapi's strfmt knows them. */
#pragma once

#include <stdbool.h>

/* IsDateTime: a date that exists, 't', a time with an offset and perhaps a fraction. */
bool is_date_time(const char *text);
