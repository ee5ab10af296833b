/* The resources of the program, for tests, and an arena for each test. */
#pragma once

#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "standalone/schema/resource.h"

extern struct arena *test_arena;
extern struct resources *test_resources;

void resources_setup(void);
void resources_teardown(void);

/* "tasks", "configmaps": of the first group that has it. */
const struct resource *resource_of(const char *plural);
/* A tree of its own, to be changed, owned by the arena. */
cJSON *tree(const char *text);
/* Compact text, for comparisons. */
const char *text_of(const cJSON *json);
