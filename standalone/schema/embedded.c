#include "standalone/schema/embedded.h"

#include "common/base/compiler.h"

/* The assembler reads the file, below the folder that the build runs in. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n" #symbol ":\n"                                                 \
            ".incbin \"" path "\"\n" #symbol "_end:\n"                                             \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char symbol[] __attribute__((visibility("hidden")));                              \
    extern const char symbol##_end[] __attribute__((visibility("hidden")))

EMBED(embedded_federatedjobs, "crds/federatedjobs.yaml");
EMBED(embedded_propellerjobs, "crds/propellerjobs.yaml");
EMBED(embedded_proplets, "crds/proplets.yaml");
EMBED(embedded_tasks, "crds/tasks.yaml");
EMBED(embedded_trainingrounds, "crds/trainingrounds.yaml");
EMBED(embedded_definitions, "standalone/schema/builtin.json");

const struct embedded EMBEDDED_CRDS[] = {
    { "crds/federatedjobs.yaml", embedded_federatedjobs, embedded_federatedjobs_end },
    { "crds/propellerjobs.yaml", embedded_propellerjobs, embedded_propellerjobs_end },
    { "crds/proplets.yaml", embedded_proplets, embedded_proplets_end },
    { "crds/tasks.yaml", embedded_tasks, embedded_tasks_end },
    { "crds/trainingrounds.yaml", embedded_trainingrounds, embedded_trainingrounds_end },
};
const size_t EMBEDDED_CRDS_LEN = ARRAY_LEN(EMBEDDED_CRDS);

const struct embedded EMBEDDED_DEFINITIONS = { "standalone/schema/builtin.json",
                                               embedded_definitions, embedded_definitions_end };
