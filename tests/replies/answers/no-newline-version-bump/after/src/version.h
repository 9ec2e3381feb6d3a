#pragma once
#define THING_VERSION "2.0.0"
#define THING_VERSION_MAJOR 2
#define THING_VERSION_MINOR 0
#define THING_VERSION_PATCH 0
#if THING_VERSION_MAJOR < 1
#	error "too old"
#endif