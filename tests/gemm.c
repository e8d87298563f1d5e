// SPDX-License-Identifier: Apache-2.0
// The setting cpu.gemm: each library in a process of its own, through the backend's table,
// against loops in f64; what it does not take; what a wrong value gets.
#include "config.h"

#include <sys/wait.h>
#include <unistd.h>

#include "named_op.h"

int yoke_cpu_init(uint32_t core_abi, const struct yoke_host *lent,
		  const struct yoke_backend **backend);

enum { RIGHT, WRONG, ABSENT };

static const char *wish; // the value of cpu.gemm
static int error_code;
static char error_text[512];

static const char *setting(const struct yoke_setting *s)
{
	return strcmp(s->name, "cpu.gemm") ? s->def : wish;
}

static void error(int code, const char *text)
{
	error_code = code;
	snprintf(error_text, sizeof error_text, "%s", text);
}

static const struct yoke_backend *backend_for(const char *gemm)
{
	static struct yoke_host host = { .size = sizeof host, .abi = YOKE_ABI };
	const struct yoke_backend *b = NULL;

	host.setting = setting;
	host.error = error;
	wish = gemm;
	return yoke_cpu_init(YOKE_ABI, &host, &b) ? NULL : b;
}

static int run(const struct yoke_backend *b, const struct yoke_op *op, uint32_t impl)
{
	uint64_t bytes = 0;
	void *handle;
	int err = b->prepare(0, op, impl, 0, &handle, &bytes);

	if (err || bytes)
		return err ? err : YOKE_EFAILED;
	err = b->run(NULL, handle, op);
	b->release(handle);
	return err;
}

// One product of `batch` matrices; does it come from this implementation, and right?
static bool product(const struct yoke_backend *b, const char *impl, int dtype,
		    int64_t batch, int64_t m, int64_t n, int64_t k, bool ta, bool tb)
{
	int64_t da[3] = { batch, m, k }, db[3] = { batch, k, n }, dc[3] = { batch, m, n };
	int64_t sa[3] = { m * k, ta ? 1 : k, ta ? m : 1 };
	int64_t sb[3] = { k * n, tb ? 1 : n, tb ? k : 1 };
	size_t size = yk_esize(dtype);
	struct yoke_view in[2], out;
	bool good = true;

	in[0] = strided(array_new((size_t)(batch * m * k) * size), dtype, 3, da, sa);
	in[1] = strided(array_new((size_t)(batch * k * n) * size), dtype, 3, db, sb);
	out = dense(array_new((size_t)(batch * m * n) * size), dtype, 3, dc);
	for (int i = 0; i < 2; i++)
		for (int64_t e = 0; e < yk_elements(&in[i]); e++) {
			double x = (float)rnd_real(-1, 1);
			float f = (float)x;
			memcpy((char *)yk_ptr(&in[i]) + (size_t)e * size,
			       dtype == yoke_f32 ? (void *)&f : (void *)&x, size);
		}
	struct yoke_op op = op_of(YOKE_OP_CONTRACT, 1, &out, 2, in);
	uint64_t mask = b->can(0, &op);
	uint32_t which = (uint32_t)__builtin_ctzll(mask | (uint64_t)1 << 63);
	if (which > 3 || strcmp(b->impl_name(0, &op, which), impl)) {
		diag("mask %llx, wanted %s", (unsigned long long)mask, impl);
		good = false;
	} else if (strcmp(impl, "packed") && run(b, &op, which)) {
		good = false;
	}
	for (int64_t e = 0; good && strcmp(impl, "packed") && e < batch * m * n; e++) {
		int64_t z = e / (m * n), i = e / n % m, j = e % n;
		double want = 0, got;
		for (int64_t l = 0; l < k; l++) {
			int64_t at[2] = { z * sa[0] + i * sa[1] + l * sa[2],
					  z * sb[0] + l * sb[1] + j * sb[2] };
			double x[2];
			for (int q = 0; q < 2; q++)
				x[q] = dtype == yoke_f32 ?
					       ((float *)yk_ptr(&in[q]))[at[q]] :
					       ((double *)yk_ptr(&in[q]))[at[q]];
			want += x[0] * x[1];
		}
		got = dtype == yoke_f32 ? ((float *)yk_ptr(&out))[e] :
					  ((double *)yk_ptr(&out))[e];
		good = fabs(got - want) <= 1e-6 * (double)k;
		if (!good)
			diag("[%lld] got %.9g want %.9g", (long long)e, got, want);
	}
	return arrays_free() && good;
}

static int with_library(const char *gemm)
{
	const struct yoke_backend *b = backend_for(gemm);
	const char *f64 = strcmp(gemm, "onednn") ? gemm : "packed";
	uint32_t devices;
	bool good = true;

	if (!b)
		return WRONG;
	if (b->probe(&devices)) {
		diag("%s", error_text);
		return error_code == YOKE_ENOENT && strstr(error_text, gemm) ? ABSENT :
									       WRONG;
	}
	for (int t = 0; t < 4; t++) {
		good &= product(b, gemm, yoke_f32, 1, 33, 47, 65, t & 1, t & 2);
		good &= product(b, gemm, yoke_f32, 3, 17, 5, 9, t & 1, t & 2);
		good &= product(b, f64, yoke_f64, 1, 13, 21, 7, t & 1, t & 2);
	}
	return good ? RIGHT : WRONG;
}

static int with_nonsense(const char *gemm)
{
	const struct yoke_backend *b = backend_for(gemm);
	uint32_t devices;

	if (!b || b->probe(&devices) != YOKE_EINVAL)
		return WRONG;
	return strstr(error_text, "own, cblas or onednn") ? RIGHT : WRONG;
}

static int in_child(int (*fn)(const char *), const char *gemm)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int rc = fn(gemm);
		fflush(stdout);
		_exit(rc);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return WRONG;
	return WEXITSTATUS(status);
}

int main(void)
{
	static const char *const gemms[] = { "cblas", "onednn" };

	tap_seed();
	for (int i = 0; i < 2; i++) {
		int rc = in_child(with_library, gemms[i]);
		if (rc == ABSENT)
			skip(gemms[i], "no such library here");
		else
			ok(rc == RIGHT, "cpu.gemm=%s: whole matrices, right", gemms[i]);
	}
	ok(in_child(with_nonsense, "fastest") == RIGHT, "cpu.gemm=fastest: says what there is");
	return done();
}
