#ifndef MAP_H
#define MAP_H

#include <stddef.h>

struct map;

struct map *map_new(void);
void map_free(struct map *m);
int map_set(struct map *m, const char *key, const char *value);
const char *map_get(const struct map *m, const char *key);
/* 0, or -1 when there is no such key */
int map_delete(struct map *m, const char *key);
size_t map_len(const struct map *m);

#endif /* MAP_H */
