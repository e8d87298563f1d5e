// SPDX-License-Identifier: Apache-2.0
// Tests that an instruction set which this processor lacks, or which does not exist, is refused in
// one line that names it, and that each one it has is chosen.
#include "config.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../backends/cpu/host/frame.h"
#include "tap.h"
#include "yoke.h"

static const char *const names[] = { "avx2",      "avx512", "avx512_bf16", "amx",    "neon",
				     "neon_bf16", "sve256", "sve256_bf16", "sve512", "sve512_bf16",
				     "rvv",       "rvv256", "sse9",        "AVX2" };

// Output and exit status of a process with YOKE_CPU_ISA=name.
struct outcome {
	int status;       // -1: it crashed
	char text[2048];  // its error message, then all that it wrote to stderr
};

static void use(int out)
{
	dup2(out, STDERR_FILENO);
	yoke_context *c = yoke_context_new(NULL);
	if (!c) {
		const char *why = yoke_error();
		_exit(write(out, why, strlen(why)) == (ssize_t)strlen(why) ? 1 : 2);
	}
	float y = 0;
	yoke_tensor *sum =
		yoke_add(yoke_full(yoke_f32, 0, NULL, 1), yoke_full(yoke_f32, 0, NULL, 2));
	_exit(yoke_read(sum, &y, sizeof y) == 0 && y == 3 ? 0 : 2);
}

static struct outcome outcome_of(const char *name)
{
	struct outcome o = { .status = -1 };
	int pipes[2], status = 0;
	size_t n = 0;
	ssize_t got;

	if (pipe(pipes) < 0)
		return o;
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		setenv("YOKE_CPU_ISA", name, 1);
		close(pipes[0]);
		use(pipes[1]);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], o.text + n, sizeof o.text - 1 - n)) > 0)
		n += (size_t)got;
	close(pipes[0]);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status))
		o.status = WEXITSTATUS(status);
	return o;
}

static bool is_among(const char *name, const struct yk_isa *const *list, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(name, list[i]->name))
			return true;
	return false;
}

int main(void)
{
	const struct yk_isa *list[YK_ISA_LEVELS];
	const int n = yk_isa_levels(list);
	struct outcome o = outcome_of("base");

	ok(o.status == 0 && !*o.text, "base runs on every processor: %d, %s", o.status, o.text);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char phrase[64];
		o = outcome_of(names[i]);
		if (is_among(names[i], list, n)) {
			ok(o.status == 0 && !*o.text, "%s: this processor has it, it runs: %d, %s",
			   names[i], o.status, o.text);
			continue;
		}
		snprintf(phrase, sizeof phrase, "cpu.isa=%s: ", names[i]);
		ok(o.status == 1 && strstr(o.text, phrase) && !strchr(o.text, '\n'),
		   "%s is refused in one line: %d, %s", names[i], o.status, o.text);
	}
	return done();
}
