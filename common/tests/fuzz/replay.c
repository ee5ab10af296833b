/* main() of a fuzz target that is linked without a fuzzer: feeds it each file named. */
#include <stdint.h>

#include "common/tests/fuzz/target.h"

/* Inputs are kept small, for the fuzzer's sake as well. */
#define MAX_INPUT ((size_t)1 << 20)

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");

    if (!file) {
        perror(path);
        return -1;
    }

    /* exactly as large as the input, so that the address sanitizer watches its end */
    uint8_t *bytes = malloc(MAX_INPUT);
    size_t len = bytes ? fread(bytes, 1, MAX_INPUT, file) : 0;
    uint8_t *input = malloc(len + !len);

    (void)fclose(file);
    if (bytes && input) {
        memcpy(input, bytes, len);
        (void)LLVMFuzzerTestOneInput(input, len);
    }
    free(bytes);
    free(input);
    return bytes && input ? 0 : -1;
}

int main(int argc, char **argv)
{
    int survived = 0;

    for (int i = 1; i < argc; i++) {
        if (replay(argv[i]) < 0)
            return 1;
        printf("survived %s\n", argv[i]);
        (void)fflush(stdout); /* the next one may abort */
        survived++;
    }
    printf("Inputs: %d\n", survived);
    return 0;
}
