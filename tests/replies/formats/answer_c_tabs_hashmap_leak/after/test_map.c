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

	/* overwrite */
	assert(map_set(m, "key42", "new") == 0);
	assert(map_len(m) == 100);
	assert(strcmp(map_get(m, "key42"), "new") == 0);

	/* delete */
	assert(!map_delete(m, "nope"));
	for (int i = 0; i < 50; i++) {
		snprintf(key, sizeof key, "key%d", i);
		assert(map_delete(m, key));
		assert(!map_get(m, key));
	}
	assert(!map_delete(m, "key42"));
	assert(map_len(m) == 50);
	for (int i = 50; i < 100; i++) {
		snprintf(key, sizeof key, "key%d", i);
		assert(map_get(m, key));
	}

	/* reuse of a tombstone */
	assert(map_set(m, "key42", "again") == 0);
	assert(strcmp(map_get(m, "key42"), "again") == 0);
	assert(map_len(m) == 51);

	map_free(m);
	puts("ok");
	return 0;
}
