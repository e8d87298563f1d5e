// SPDX-License-Identifier: Apache-2.0
// Settings: "plan.max" is YOKE_PLAN_MAX in the environment.  Each is declared once, in the file
// that uses it, and registers itself before main, so that all can be listed.  Precedence: argument
// (yk_param_set), config file, environment, default.
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
	char *text;      // current value, NULL: not resolved yet
	int64_t value;   // for all types but strings
	int64_t min, max; // range of an integer; both 0: any
	bool debug; // disables or disturbs parts of the library, for tests and debugging
	// why another value would have no effect any more; NULL: it has (fixed.h)
	const char *fixed;
	struct yk_param *next;
};

// YK_PARAM(max_plans, "plan.max", YK_INT, "64", "plans kept, least recently used go first",
//	    .max = 1000);
#define YK_PARAM(var, name_, type_, def_, help_, ...) \
	static struct yk_param var = { \
		.name = name_, .type = type_, .def = def_, .help = help_, ##__VA_ARGS__ }; \
	__attribute__((constructor)) static void var##_declare(void) { yk_param_declare(&var); } \
	struct yk_param

void yk_param_declare(struct yk_param *);
// Receives warnings about values and variables.  log.c sets it before main, since the log itself
// has a setting.
extern void (*yk_param_warn_hook)(const char *line);
// Resolve the value on first use.  An invalid value in the environment causes one warning and the
// default is used.
int64_t yk_param_int(struct yk_param *);
bool yk_param_bool(struct yk_param *);
const char *yk_param_str(struct yk_param *);
// The setting with that name, or NULL.
struct yk_param *yk_param_find(const char *name);
// Checks and sets the value; does not replace a value of higher precedence. EINVAL, or ENOENT with
// the nearest name.
int yk_param_set(const char *name, const char *value, enum yk_param_origin);
// Counts assignments to settings: a decision made at another epoch may be stale.
uint32_t yk_param_epoch(void);
// Calls fn for each setting, sorted by name.
void yk_param_each(void (*fn)(struct yk_param *, void *), void *arg);
// "plan.max" -> "YOKE_PLAN_MAX".
void yk_param_env(const char *name, char *to, unsigned long cap);
// This process's environment updated with the settings set here, for a child process that should
// see the same settings.  One block, to be freed with free(); NULL: no memory.
char **yk_param_environment(void);
// Warns once about environment variables that look like settings but are not, with the nearest
// name; call it after plugins have declared theirs.  YOKE_TEST_* variables are ignored.
void yk_param_judge(void);
// The nearest of n names by edit distance, or NULL if none is close.
const char *yk_nearest(const char *word, const char *const *names, int n);
// "did you mean 'map'; there are contract, map": the nearest name, if one is close, and all names.
// Returns `to`, truncated to cap.
const char *yk_hint(const char *word, const char *const *names, int n, char *to, size_t cap);
// "512M" -> bytes; EINVAL.
int yk_parse_bytes(const char *text, int64_t *to);

#endif
