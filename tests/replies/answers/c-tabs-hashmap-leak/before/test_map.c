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
	map_free(m);
	puts("ok");
	return 0;
}
