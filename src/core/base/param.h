// SPDX-License-Identifier: Apache-2.0
// Declared settings: "plan.max" is YOKE_PLAN_MAX in the environment.
// Each is declared once, where it is used, and registers itself before main, so that all can be
// listed.  Precedence: argument (yk_param_set), config file, environment, default.
#ifndef YK_PARAM_H
#define YK_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum yk_param_type { YK_BOOL, YK_INT, YK_BYTES, YK_STRING }; // BYTES: "512M", "2GiB", "1000"
enum yk_param_origin { YK_DEFAULT, YK_ENVIRONMENT, YK_CONFIG, YK_ARGUMENT };

struct yk_param {
	const char *name;
	enum yk_param_type type;
	const char *def, *help;
	enum yk_param_origin origin;
	char *text;      // present value, NULL: not resolved yet
	int64_t value;   // of all but strings
	int64_t least, most; // of an integer; both 0: any
	bool debug; // disables or disturbs a part of the library, to test it or to find a fault in it
	struct yk_param *next;
};

// YK_PARAM(max_plans, "plan.max", YK_INT, "64", "plans kept, least recently used go first",
//	    .most = 1000);
#define YK_PARAM(var, name_, type_, def_, help_, ...) \
	static struct yk_param var = { \
		.name = name_, .type = type_, .def = def_, .help = help_, ##__VA_ARGS__ }; \
	__attribute__((constructor)) static void var##_declare(void) { yk_param_declare(&var); } \
	struct yk_param

void yk_param_declare(struct yk_param *);
// Resolves on first use.  A bad value in the environment is warned about once and the default used.
int64_t yk_param_int(struct yk_param *);
bool yk_param_bool(struct yk_param *);
const char *yk_param_str(struct yk_param *);
// The setting of that name, or NULL.
struct yk_param *yk_param_find(const char *name);
// Checks and sets; EINVAL, or ENOENT with the nearest name.  A value of stronger origin stays.
int yk_param_set(const char *name, const char *value, enum yk_param_origin);
// How often a setting was set since the start: what was decided under another number may be stale.
uint32_t yk_param_epoch(void);
// Sorted by name.
void yk_param_each(void (*fn)(struct yk_param *, void *), void *arg);
// "plan.max" -> "YOKE_PLAN_MAX".
void yk_param_env(const char *name, char *to, unsigned long cap);
// This process's environment with what was set here in place of what it says: for a child that shall see
// the same settings.  One block, for free(); NULL: no memory.
char **yk_param_environment(void);
// Warns once of variables of the environment named as settings that are none, with the nearest; to be called
// when those of plugins are declared.  YOKE_TEST_* are not ours.
void yk_param_judge(void);
// The nearest of n names by edit distance, or NULL when none is near.
const char *yk_nearest(const char *word, const char *const *names, int n);
// "did you mean 'map'; there are contract, map": the nearest, if one is near, and all of them.
// Returns `to`, which a longer text fills.
const char *yk_hint(const char *word, const char *const *names, int n, char *to, size_t cap);
// "512M" -> bytes; EINVAL.
int yk_parse_bytes(const char *text, int64_t *to);

#endif
