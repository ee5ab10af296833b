/* Prints a report as JSON. It runs as a command, so what it prints is the result of its Task. */
#include <stdio.h>
#include <stdlib.h>

static const double SAMPLES[] = { 19.5, 20.25, 20.75, 21.5 };
static const size_t COUNT = sizeof(SAMPLES) / sizeof(*SAMPLES);

int main(void)
{
    const char *site = getenv("SITE");
    double sum = 0, highest = SAMPLES[0];

    if (!site) {
        fprintf(stderr, "the variable SITE is not set\n");
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < COUNT; i++) {
        sum += SAMPLES[i];
        highest = SAMPLES[i] > highest ? SAMPLES[i] : highest;
    }
    printf("{\"site\":\"%s\",\"mean\":%.2f,\"highest\":%.2f}\n", site, sum / (double)COUNT, highest);
    return EXIT_SUCCESS;
}
