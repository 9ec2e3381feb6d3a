#pragma once
#define THING_VERSION "1.9.0"
#define THING_VERSION_MAJOR 1
#define THING_VERSION_MINOR 9
#define THING_VERSION_PATCH 0
#if THING_VERSION_MAJOR < 1
#	error "too old"
#endif