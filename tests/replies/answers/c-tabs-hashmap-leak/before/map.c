#include "map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIN_CAP 8

struct slot {
	char *key;		/* owned */
	char *value;	/* owned */
};

struct map {
	struct slot *slots;
	size_t cap, len;
};

static uint64_t hash(const char *s)
{
	uint64_t h = 14695981039346656037ULL;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211ULL;
	return h;
}

static char *dup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = malloc(n);
	return p ? memcpy(p, s, n) : NULL;
}

static struct slot *find(const struct map *m, const char *key)
{
	size_t i = hash(key) & (m->cap - 1);
	while (m->slots[i].key && strcmp(m->slots[i].key, key) != 0)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

struct map *map_new(void)
{
	struct map *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->cap = MIN_CAP;
	m->slots = calloc(m->cap, sizeof *m->slots);
	if (!m->slots) {
		free(m);
		return NULL;
	}
	return m;
}

void map_free(struct map *m)
{
	for (size_t i = 0; i < m->cap; i++)
		free(m->slots[i].value);
	free(m->slots);
	free(m);
}

static int grow(struct map *m)
{
	struct map bigger = { .cap = m->cap * 2, .len = m->len };
	bigger.slots = calloc(bigger.cap, sizeof *bigger.slots);
	if (!bigger.slots)
		return -1;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].key)
			*find(&bigger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

int map_set(struct map *m, const char *key, const char *value)
{
	if ((m->len + 1) * 4 > m->cap * 3 && grow(m) < 0)
		return -1;
	struct slot *s = find(m, key);
	if (!s->key) {
		s->key = dup(key);
		m->len++;
	}
	s->value = dup(value);
	return s->key && s->value ? 0 : -1;
}

const char *map_get(const struct map *m, const char *key)
{
	return find(m, key)->value;
}

size_t map_len(const struct map *m)
{
	return m->len;
}
