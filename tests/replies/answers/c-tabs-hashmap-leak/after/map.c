#include "map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIN_CAP 8

struct slot {
	char *key;		/* owned, or TOMBSTONE */
	char *value;	/* owned */
};

struct map {
	struct slot *slots;
	size_t cap, len;
	size_t used;	/* len and the tombstones */
};

/* Only its address matters: the key of a deleted slot. */
static char tombstone;
#define TOMBSTONE (&tombstone)

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

/* The slot of the key, or else the one where it may be put. */
static struct slot *find(const struct map *m, const char *key)
{
	struct slot *grave = NULL;
	size_t i = hash(key) & (m->cap - 1);
	for (; m->slots[i].key; i = (i + 1) & (m->cap - 1)) {
		if (m->slots[i].key == TOMBSTONE) {
			if (!grave)
				grave = &m->slots[i];
		} else if (strcmp(m->slots[i].key, key) == 0) {
			return &m->slots[i];
		}
	}
	return grave ? grave : &m->slots[i];
}

static int is_live(const struct slot *s)
{
	return s->key && s->key != TOMBSTONE;
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
	if (!m)
		return;
	for (size_t i = 0; i < m->cap; i++) {
		if (is_live(&m->slots[i]))
			free(m->slots[i].key);
		free(m->slots[i].value);
	}
	free(m->slots);
	free(m);
}

static int grow(struct map *m)
{
	struct map bigger = { .cap = m->cap * 2, .len = m->len, .used = m->len };
	bigger.slots = calloc(bigger.cap, sizeof *bigger.slots);
	if (!bigger.slots)
		return -1;
	for (size_t i = 0; i < m->cap; i++)
		if (is_live(&m->slots[i]))
			*find(&bigger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

int map_set(struct map *m, const char *key, const char *value)
{
	if ((m->used + 1) * 4 > m->cap * 3 && grow(m) < 0)
		return -1;
	char *v = dup(value);
	if (!v)
		return -1;
	struct slot *s = find(m, key);
	if (!is_live(s)) {
		char *k = dup(key);
		if (!k) {
			free(v);
			return -1;
		}
		if (!s->key)
			m->used++;
		s->key = k;
		m->len++;
	}
	free(s->value);
	s->value = v;
	return 0;
}

int map_delete(struct map *m, const char *key)
{
	struct slot *s = find(m, key);
	if (!is_live(s))
		return -1;
	free(s->key);
	free(s->value);
	s->key = TOMBSTONE;
	s->value = NULL;
	m->len--;
	return 0;
}

const char *map_get(const struct map *m, const char *key)
{
	return find(m, key)->value;
}

size_t map_len(const struct map *m)
{
	return m->len;
}
