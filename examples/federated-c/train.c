/*
 * One participant of federated learning: linear regression y = w1 x1 + w2 x2 + b, two epochs of gradient descent on
 * samples of its own. PROPLET_ID decides how many they are, where they lie and which noise they have, so no two devices
 * have the same data. It begins with the model of the round, or with zeros, and prints its update as JSON. The loss is
 * that of the model it began with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHTS = 3, MAX_SAMPLES = 64, EPOCHS = 2, MAX_MODEL = 4096 };
static const double TRUTH[WEIGHTS] = { 2, -3, 1 };
static const double RATE = 0.01;

struct sample {
    double x[2], y;
};

/* In [0, 1), by the numbers of SplitMix64. */
static double chance(unsigned long long *state)
{
    unsigned long long z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static int own_samples(struct sample samples[MAX_SAMPLES])
{
    const char *id = getenv("PROPLET_ID");
    unsigned long long state = 1;

    for (; id && *id; id++)
        state = state * 31 + (unsigned char)*id;
    int count = MAX_SAMPLES / 2 + (int)(chance(&state) * MAX_SAMPLES / 2);
    double centre = chance(&state) * 2 - 1;
    for (int i = 0; i < count; i++) {
        struct sample *sample = &samples[i];

        sample->x[0] = centre + chance(&state) * 2 - 1;
        sample->x[1] = chance(&state) * 2 - 1;
        sample->y = TRUTH[0] * sample->x[0] + TRUTH[1] * sample->x[1] + TRUTH[2] +
                    (chance(&state) - 0.5) / 10;
    }
    return count;
}

static void decode_base64(const char *text, char *ret, size_t size)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, len = 0;
    size_t used = 0;
    const char *digit;

    for (; *text && (digit = strchr(DIGITS, *text)) && used + 1 < size; text++) {
        bits = bits << 6 | (unsigned)(digit - DIGITS);
        len += 6;
        if (len >= 8) {
            len -= 8;
            ret[used++] = (char)(bits >> len & 0xff);
        }
    }
    ret[used] = '\0';
}

/* [w1, w2, b], from the coordinator or in base64; zeros in the first round. */
static void begin(double model[WEIGHTS])
{
    const char *given = getenv("MODEL_DATA"), *encoded = getenv("FL_GLOBAL_UPDATE_B64");
    static char decoded[MAX_MODEL];

    if (!given && encoded) {
        decode_base64(encoded, decoded, sizeof(decoded));
        given = decoded;
    }
    const char *at = given ? strchr(given, '[') : NULL;
    for (int i = 0; at && i < WEIGHTS; i++) {
        char *end;

        model[i] = strtod(at + 1, &end);
        at = *end == ',' ? end : NULL;
    }
}

static double error_of(const double model[WEIGHTS], const struct sample *sample)
{
    return model[0] * sample->x[0] + model[1] * sample->x[1] + model[2] - sample->y;
}

static void train(double model[WEIGHTS], const struct sample *samples, int count)
{
    for (int i = 0; i < EPOCHS * count; i++) {
        const struct sample *sample = &samples[i % count];
        double step = RATE * error_of(model, sample);

        model[0] -= step * sample->x[0];
        model[1] -= step * sample->x[1];
        model[2] -= step;
    }
}

int main(void)
{
    static struct sample samples[MAX_SAMPLES];
    double model[WEIGHTS] = { 0 }, loss = 0;
    int count = own_samples(samples);

    begin(model);
    for (int i = 0; i < count; i++)
        loss += error_of(model, &samples[i]) * error_of(model, &samples[i]) / count;
    train(model, samples, count);
    printf("{\"num_samples\":%d,\"metrics\":{\"loss\":%.6f},\"update\":[%.12f,%.12f,%.12f]}\n", count, loss, model[0],
           model[1], model[2]);
    return EXIT_SUCCESS;
}
