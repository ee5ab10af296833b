#include "certs/file_place.h"

#include "certs/file_set.h"

int file_place_load(void *self, struct arena *arena, struct cert_observed *ret, struct error *err)
{
    const struct file_place *place = self;
    const struct {
        const char *directory;
        const char *name;
        const char **ret;
    } files[] = {
        { place->ca_dir, FILE_PLACE_CA, &ret->trust },
        { place->ca_dir, FILE_PLACE_CA_KEY, &ret->ca.key },
        { place->cert_dir, FILE_PLACE_CERT, &ret->leaf.cert },
        { place->cert_dir, FILE_PLACE_KEY, &ret->leaf.key },
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int r = file_set_read(arena, files[i].directory, files[i].name, files[i].ret, err);
        if (r < 0)
            return r;
    }
    ret->ca.cert = cert_first(arena, ret->trust);
    return 0;
}

int file_place_save_ca(void *self, struct arena *arena UNUSED, const struct cert_pair *ca,
                       const char *trust, struct error *err)
{
    const struct file_place *place = self;
    const struct file_content files[] = { { FILE_PLACE_CA, trust },
                                          { FILE_PLACE_CA_KEY, ca->key } };

    return file_set_write(place->ca_dir, files, ARRAY_LEN(files), err);
}

int file_place_save_leaf(void *self, struct arena *arena UNUSED, const struct cert_pair *leaf,
                         struct error *err)
{
    const struct file_place *place = self;
    const struct file_content files[] = { { FILE_PLACE_CERT, leaf->cert },
                                          { FILE_PLACE_KEY, leaf->key } };

    return file_set_write(place->cert_dir, files, ARRAY_LEN(files), err);
}
