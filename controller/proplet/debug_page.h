/* GET /debug/proplets?namespace=&name=: the live values of one Proplet, which the API has only now
 * and then. */
#pragma once

#include "common/runtime/health.h"

health_page_fn debug_proplets_page; /* ctx: struct proplet_deps * */
