/* Functions that do not compile here, each with what to use instead. Included by the build for
 * every source. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang's hardened headers have macros of these names. */
#undef sprintf
#undef vsprintf

#define strcpy(...) use_arena_strdup_or_str_copy_instead_of_strcpy
#define strcat(...) use_buf_append_string_instead_of_strcat
#define strncpy(...) use_str_copy_instead_of_strncpy
#define strncat(...) use_buf_append_instead_of_strncat
#define sprintf(...) use_arena_printf_instead_of_sprintf
#define vsprintf(...) use_arena_vprintf_instead_of_vsprintf
#define strtok(...) use_strcspn_instead_of_strtok
#define atoi(...) use_str_to_int64_instead_of_atoi
#define atol(...) use_str_to_int64_instead_of_atol
#define atof(...) use_str_to_double_instead_of_atof
#define gmtime(...) use_rfc3339_format_instead_of_gmtime
#define localtime(...) use_rfc3339_format_instead_of_localtime
#define rand(...) use_uuid_random_instead_of_rand
