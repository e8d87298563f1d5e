// SPDX-License-Identifier: Apache-2.0
// Calls of the CPU backend's kernels through the table of an instruction set, with 1 and with all
// threads.  Included by named_op.h.
#ifndef YK_CPU_NAMED_H
#define YK_CPU_NAMED_H

static inline int run_once(const struct yk_kernel *k, const struct yoke_op *op,
			   uint32_t impl)
{
	struct yoke_op with = *op;
	uint64_t bytes = k->workspace ? k->workspace(op, impl) : 0;
	struct yk_segment space = { malloc(bytes + GUARD), bytes };
	if (!space.base)
		abort();
	memset(space.base, 0xff, bytes);
	memset(space.base + bytes, 0x5a, GUARD);
	if (bytes)
		with.workspace = (struct yoke_view){ .segment = &space,
						     .kind = YOKE_VIEW_BUFFER,
						     .dtype = yoke_u8,
						     .rank = 1,
						     .align = 64,
						     .dims = { (int64_t)bytes },
						     .strides = { 1 } };
	int code = yk_kernel_once(k, &with, impl);
	for (int i = 0; i < GUARD; i++)
		if (space.base[bytes + (uint64_t)i] != 0x5a)
			code = YOKE_EFAILED;
	free(space.base);
	return code;
}

static inline void copy_arrays(char *const to[], bool back)
{
	for (int i = 0; i < array_count; i++)
		if (back)
			memcpy(arrays[i].segment.base, to[i], arrays[i].bytes);
		else
			memcpy(to[i], arrays[i].segment.base, arrays[i].bytes);
}

// Implementations of this instruction set that take the op, as can answers.
static inline uint64_t impls(const struct yk_isa *isa, const struct yoke_op *op)
{
	const struct yk_kernel *k = isa->op[op->code];
	return k ? k->can(op) : 0;
}

// Runs op with all threads, then from the same start with one, and compares every byte of
// every array.  Returns the code, or EUNSUPPORTED where the kernel does not take it.
static inline int call_impl(const struct yk_isa *isa, const struct yoke_op *op,
			    uint32_t impl)
{
	const struct yk_kernel *k = isa->op[op->code];
	if (!(impls(isa, op) >> impl & 1))
		return YOKE_EUNSUPPORTED;
	char *before[ARRAYS], *many[ARRAYS];
	for (int i = 0; i < array_count; i++) {
		before[i] = malloc(arrays[i].bytes + 1);
		many[i] = malloc(arrays[i].bytes + 1);
		if (!before[i] || !many[i])
			abort();
	}
	copy_arrays(before, false);
	int code = run_once(k, op, impl);
	copy_arrays(many, false);
	copy_arrays(before, true);
	yk_team_limit(1);
	int code_one = run_once(k, op, impl);
	yk_team_limit(0);
	bool same = code == code_one;
	for (int i = 0; i < array_count; i++) {
		same &= !memcmp(many[i], arrays[i].segment.base, arrays[i].bytes);
		free(before[i]);
		free(many[i]);
	}
	if (!same)
		ok(false, "%s: op %d gives the same bits with 1 and %d threads",
		   isa->name, op->code, yk_team_size());
	return code;
}

// The same with the best implementation.
static inline int call(const struct yk_isa *isa, const struct yoke_op *op)
{
	uint64_t can = impls(isa, op);
	return can ? call_impl(isa, op, (uint32_t)__builtin_ctzll(can)) :
		     YOKE_EUNSUPPORTED;
}

// The machine's tables; returns their number.
static inline int isas(const struct yk_isa *list[3])
{
	tap_seed();
	yk_stream_bytes = tap_stream_bytes();
	return yk_isa_usable(list);
}

#endif
