#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "map.h"

int main(void)
{
	struct map *m = map_new();
	char key[16];

	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "key%d", i);
		assert(map_set(m, key, "x\ty\\z") == 0);
	}
	assert(map_len(m) == 100);
	assert(strcmp(map_get(m, "key42"), "x\ty\\z") == 0);
	assert(!map_get(m, "nope"));

	/* set again */
	assert(map_set(m, "key42", "new") == 0);
	assert(map_len(m) == 100);
	assert(strcmp(map_get(m, "key42"), "new") == 0);

	/* delete every other key; the rest must still be found */
	for (int i = 0; i < 100; i += 2) {
		snprintf(key, sizeof key, "key%d", i);
		assert(map_delete(m, key) == 0);
		assert(map_delete(m, key) == -1);
	}
	assert(map_delete(m, "nope") == -1);
	assert(map_len(m) == 50);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "key%d", i);
		assert(!map_get(m, key) == (i % 2 == 0));
	}

	/* put one back */
	assert(map_set(m, "key42", "back") == 0);
	assert(strcmp(map_get(m, "key42"), "back") == 0);
	assert(map_len(m) == 51);

	/* tombstones must not fill up the table */
	for (int i = 0; i < 10000; i++) {
		snprintf(key, sizeof key, "tmp%d", i);
		assert(map_set(m, key, "") == 0);
		assert(map_delete(m, key) == 0);
	}
	assert(map_len(m) == 51);
	map_free(m);
	puts("ok");
	return 0;
}
