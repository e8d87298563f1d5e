// SPDX-License-Identifier: Apache-2.0
// Runs a work group as coroutines of one thread. Items run one after another on one stack until
// one waits for a barrier or its warp; only then do the following items get stacks of their own.
// A kernel that never waits is thus a plain loop.
#include "config.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if !defined __x86_64__ && !defined __aarch64__
#include <ucontext.h>
#endif

#include "exec.h"

// Code that runs on a coroutine's stack, which sanitizers do not know.
#define BARE __attribute__((no_sanitize("address", "thread", "undefined")))

enum {
	MAX_ITEMS = 1024, // of a group
	MAX_WARP = 64,
	// Not a power of two, so that stacks use different cache sets.
	STACK = (128 << 10) + 4096 + 192,
};

enum wait { NO_WAIT, AT_BARRIER, AT_EXCHANGE, ENDED };

#if defined __x86_64__ || defined __aarch64__
typedef void *context;
#else
typedef ucontext_t context;
#endif

struct item {
	context context;
	struct fake_dim thread;
	enum wait wait;
	bool ready; // its wait is over
	int site;
	enum fake_exchange what;
	unsigned long mask, value;
	unsigned source;
};

// State of an executing thread; kept for the next one.
struct group {
	struct group *next_free;
	const struct fake_launch *launch;
	struct fake_state *state;
	context main;
	struct item item[MAX_ITEMS];
	char *stacks;
	unsigned count, started, ended, waiting, running;
	unsigned next; // the first item that may be ready; count: none
	bool backwards; // items start from the last
	enum fake_end end;
};

// ---- switching ----

#if defined __x86_64__
void fake_switch(void **save, void *to);
void fake_start(void);
__asm__(".text\n"
	".globl fake_switch\n.hidden fake_switch\n.type fake_switch, @function\n"
	"fake_switch:\n"
	"	pushq %rbp\n	pushq %rbx\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbx\n	popq %rbp\n"
	"	popq %rcx\n"
	"	jmpq *%rcx\n" // a ret would be predicted to return

	".size fake_switch, . - fake_switch\n"
	".globl fake_start\n.hidden fake_start\n.type fake_start, @function\n"
	"fake_start:\n"
	"	movq %rbx, %rdi\n"
	"	callq *%r12\n"
	"	ud2\n"
	".size fake_start, . - fake_start\n");

BARE static void prepare(context *c, char *stack, void (*run)(void *), void *arg)
{
	void **top = (void **)((uintptr_t)(stack + STACK - 64) & ~(uintptr_t)63);

	*--top = (void *)fake_start; // where the stack is aligned
	*--top = NULL;        // rbp
	*--top = arg;         // rbx
	*--top = (void *)run; // r12
	for (int i = 0; i < 3; i++)
		*--top = NULL;
	*c = top;
}
#define SWITCH(from, to) fake_switch(from, *(to))
#elif defined __aarch64__
void fake_switch(void **save, void *to);
void fake_start(void);
__asm__(".text\n"
	".globl fake_switch\n.hidden fake_switch\n.type fake_switch, %function\n"
	"fake_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp]\n	stp x21, x22, [sp, #16]\n	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n	stp x27, x28, [sp, #64]\n	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n	str x9, [x0]\n	mov sp, x1\n"
	"	ldp x19, x20, [sp]\n	ldp x21, x22, [sp, #16]\n	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n	ldp x27, x28, [sp, #64]\n	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size fake_switch, . - fake_switch\n"
	".globl fake_start\n.hidden fake_start\n.type fake_start, %function\n"
	"fake_start:\n"
	"	mov x0, x19\n"
	"	blr x20\n"
	"	brk #1\n"
	".size fake_start, . - fake_start\n");

BARE static void prepare(context *c, char *stack, void (*run)(void *), void *arg)
{
	void **top = (void **)((uintptr_t)(stack + STACK - 64) & ~(uintptr_t)63) - 20;

	memset(top, 0, 160);
	top[0] = arg;                    // x19
	top[1] = (void *)run;            // x20
	top[11] = (void *)fake_start; // x30
	*c = top;
}
#define SWITCH(from, to) fake_switch(from, *(to))
#else
static void enter(unsigned run_high, unsigned run_low, unsigned arg_high, unsigned arg_low)
{
	void (*run)(void *) = (void (*)(void *))((uintptr_t)run_high << 16 << 16 | run_low);

	run((void *)((uintptr_t)arg_high << 16 << 16 | arg_low));
}

static void prepare(context *c, char *stack, void (*run)(void *), void *arg)
{
	const uintptr_t r = (uintptr_t)run, a = (uintptr_t)arg;

	getcontext(c);
	c->uc_stack.ss_sp = stack;
	c->uc_stack.ss_size = STACK - 64;
	c->uc_link = NULL;
	makecontext(c, (void (*)(void))enter, 4, (unsigned)(r >> 16 >> 16), (unsigned)r,
		    (unsigned)(a >> 16 >> 16), (unsigned)a);
}
#define SWITCH(from, to) swapcontext(from, to)
#endif

// ---- what kernels call, on their stacks ----

// Switches to the next item whose wait is over, or to the main context; called from the main
// context, or by the running item, which is resumed later or has ended.
BARE static void go_on(struct group *g, context *from)
{
	context *to = &g->main;

	for (unsigned i = g->next; i < g->count; i++) {
		struct item *item = &g->item[i];
		g->next = i + 1;
		if (item->ready) {
			item->ready = false;
			g->running = i;
			to = &item->context;
			break;
		}
	}
	if (from != to)
		SWITCH(from, to);
}

BARE static void place(struct group *g, unsigned i)
{
	g->running = i;
	g->state->thread = g->item[i].thread;
}

BARE static void wait_for(struct group *g, enum wait wait, int site)
{
	const unsigned i = g->running;
	struct item *item = &g->item[i];

	item->wait = wait;
	item->site = site;
	item->ready = false;
	g->waiting++;
	go_on(g, &item->context);
	place(g, i);
}

BARE static void at_barrier(void *group, int site)
{
	wait_for(group, AT_BARRIER, site);
}

BARE static unsigned long at_exchange(void *group, int site, int what, unsigned long mask,
				      unsigned long value, unsigned source)
{
	struct group *g = group;
	struct item *item = &g->item[g->running];

	item->what = (enum fake_exchange)what;
	item->mask = mask;
	item->value = value;
	item->source = source;
	wait_for(g, AT_EXCHANGE, site);
	return item->value;
}

// "fake_gpu: kernel reduce: .., block (0,0,0), thread (3,0,0)"
__attribute__((format(printf, 3, 4)))
BARE static void say(struct group *g, unsigned item, const char *format, ...)
{
	const struct fake_dim t = g->item[item].thread, b = g->state->block;
	char line[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	fprintf(stderr, "fake_gpu: kernel %s: %s, block (%u,%u,%u), thread (%u,%u,%u)\n",
		g->launch->kernel->name, line, b.x, b.y, b.z, t.x, t.y, t.z);
}

BARE static bool is_within(unsigned long a, unsigned long bytes, const void *from, const void *to)
{
	return a >= (uintptr_t)from && a <= (uintptr_t)to && bytes <= (uintptr_t)to - a;
}

// Ends the running item, which never resumes.
BARE static void give_up(struct group *g, enum fake_end end)
{
	g->end = end;
	SWITCH(&g->item[g->running].context, &g->main);
}

// The last __shared__ variable at or before that address.
BARE static const struct fake_shared *shared_before(const struct fake_object *o, unsigned long a)
{
	const struct fake_shared *best = NULL;

	for (unsigned i = 0; i < *o->shared_count; i++) {
		const struct fake_shared *var = &o->shared_vars[i];
		if (var->from <= a && (!best || var->from > best->from))
			best = var;
	}
	return best;
}

BARE static void at_access(void *group, unsigned long a, unsigned long bytes, int store)
{
	struct group *g = group;
	const struct fake_object *o = fake_module_object(g->launch->module);
	struct fake_state *s = g->state;
	struct fake_span span = { 0, 0 };
	char near[256] = "";

	if (a < (uintptr_t)o->shared_end && a >= (uintptr_t)o->shared) {
		const struct fake_shared *var = shared_before(o, a);
		if (!*o->shared_count)
			span = (struct fake_span){ (uintptr_t)o->shared,
						   (uintptr_t)(o->shared_end - o->shared) };
		if (var && a - var->from < var->bytes)
			span = (struct fake_span){ var->from, var->bytes };
		else if (var)
			snprintf(near, sizeof near, "%lu bytes into %s, which has %lu",
				 a - var->from, var->name, var->bytes);
	} else if (is_within(a, bytes, o->image, o->image_end)) {
		span = a < (uintptr_t)o->shared ? // otherwise it follows, or there is none
			       (struct fake_span){ (uintptr_t)o->image,
						   (uintptr_t)(o->shared - o->image) } :
			       (struct fake_span){ (uintptr_t)o->shared_end,
						   (uintptr_t)(o->image_end - o->shared_end) };
	} else {
		fake_live(g->launch->device, a, &span, near, sizeof near);
	}
	if (a - span.from < span.bytes && bytes <= span.bytes - (a - span.from)) {
		s->live[s->next_live++ % FAKE_LIVE] = span;
		return;
	}
	if (span.bytes)
		snprintf(near, sizeof near, "%lu bytes into memory of %lu", a - span.from,
			 span.bytes);
	say(g, g->running, "a %s of %lu bytes at 0x%lx is outside of all memory%s%s",
	    store ? "store" : "load", bytes, a, *near ? ": " : "", near);
	give_up(g, FAKE_ILLEGAL_ADDRESS);
}

BARE static void at_misaligned(void *group, unsigned long a, unsigned long align, unsigned line)
{
	struct group *g = group;

	say(g, g->running,
	    "what line %u reads or writes at 0x%lx wants to lie at a multiple of %lu", line, a,
	    align);
	give_up(g, FAKE_MISALIGNED);
}

// Runs items until one waits; that item keeps this stack from then on.
BARE static void run_items(void *group)
{
	struct group *g = group;

	while (g->started < g->count) {
		const unsigned k = g->started++;
		place(g, g->backwards ? g->count - 1 - k : k);
		g->launch->kernel->call(g->launch->params);
		g->item[g->running].wait = ENDED;
		g->ended++;
	}
	go_on(g, &g->item[g->running].context);
}

// ---- a group ----

static bool is_whole_warp(const struct group *g, unsigned first, unsigned last,
			  const struct item *one, unsigned *odd)
{
	for (unsigned i = first; i < last; i++) {
		const struct item *item = &g->item[i];
		if (item->wait == ENDED || (one->mask && !(one->mask >> (i - first) & 1)))
			continue;
		*odd = i;
		if (item->wait != AT_EXCHANGE || item->site != one->site ||
		    item->what != one->what || item->mask != one->mask)
			return false;
	}
	return true;
}

// Lanes from `first` to `last` that wait as `one` does.
static void exchange(struct group *g, unsigned first, unsigned last, const struct item *one)
{
	const unsigned long mask = one->mask;
	unsigned long value[MAX_WARP], bits = 0, there = 0;

	for (unsigned i = first; i < last; i++)
		if (g->item[i].wait == AT_EXCHANGE && (!mask || (mask >> (i - first) & 1))) {
			there |= 1ul << (i - first);
			value[i - first] = g->item[i].value;
			bits |= (unsigned long)(g->item[i].value != 0) << (i - first);
		}
	for (unsigned i = first; i < last; i++) {
		struct item *item = &g->item[i];
		if (!(there >> (i - first) & 1))
			continue;
		// the value of a missing lane is undefined: a NaN
		item->value = item->what == FAKE_BALLOT ? bits :
			      item->what == FAKE_SHUFFLE && item->source < MAX_WARP &&
				      (there >> item->source & 1) ? value[item->source] : ~0ul;
		item->wait = NO_WAIT;
		item->ready = true;
		g->waiting--;
	}
}

static const char *doing(const struct item *item, char *to, size_t cap)
{
	if (item->wait == ENDED)
		return "has ended";
	snprintf(to, cap, "waits at the %s of line %d",
		 item->wait == AT_BARRIER ? "barrier" : "exchange of its warp", item->site);
	return to;
}

static bool diverged(struct group *g, unsigned one, unsigned other)
{
	char a[64], b[64];
	const struct fake_dim t = g->item[other].thread;

	say(g, one, "barrier divergence: one item %s, thread (%u,%u,%u) %s",
	    doing(&g->item[one], a, sizeof a), t.x, t.y, t.z, doing(&g->item[other], b, sizeof b));
	g->end = FAKE_FAILED;
	return false;
}

// Called when all items wait or have ended: releases those that may continue. False: none.
static bool release(struct group *g)
{
	const unsigned warp = g->launch->warp;
	bool some = false;
	unsigned odd = 0, first_waiting = g->count;

	for (unsigned first = 0; first < g->count; first += warp) {
		const unsigned last = first + warp < g->count ? first + warp : g->count;
		for (unsigned i = first; i < last; i++) {
			if (g->item[i].wait == AT_EXCHANGE &&
			    is_whole_warp(g, first, last, &g->item[i], &odd)) {
				const struct item one = g->item[i];
				exchange(g, first, last, &one);
				some = true;
			}
		}
	}
	if (some)
		return true;
	for (unsigned i = 0; i < g->count; i++)
		if (g->item[i].wait != ENDED && first_waiting == g->count)
			first_waiting = i;
	const struct item *one = &g->item[first_waiting];
	if (one->wait == AT_EXCHANGE) {
		const unsigned first = first_waiting / warp * warp;
		is_whole_warp(g, first, first + warp < g->count ? first + warp : g->count, one,
			      &odd);
		return diverged(g, first_waiting, odd);
	}
	for (unsigned i = 0; i < g->count; i++)
		if (g->item[i].wait != AT_BARRIER || g->item[i].site != one->site)
			return diverged(g, first_waiting, i);
	for (unsigned i = 0; i < g->count; i++) {
		g->item[i].wait = NO_WAIT;
		g->item[i].ready = true;
	}
	g->waiting = 0;
	return true;
}

static void run_group(struct group *g)
{
	g->started = g->ended = g->waiting = 0;
	g->next = g->count;
	while (g->started < g->count && g->end == FAKE_DONE) {
		const unsigned first = g->backwards ? g->count - 1 - g->started : g->started;
		prepare(&g->item[first].context, g->stacks + (size_t)first * STACK, run_items, g);
		SWITCH(&g->main, &g->item[first].context);
	}
	while (g->waiting && g->end == FAKE_DONE && release(g)) {
		g->next = 0;
		go_on(g, &g->main);
	}
}

// ---- a launch ----

static pthread_mutex_t groups_lock = PTHREAD_MUTEX_INITIALIZER;
static struct group *free_groups;

static struct group *take_group(void)
{
	pthread_mutex_lock(&groups_lock);
	struct group *g = free_groups;
	if (g)
		free_groups = g->next_free;
	pthread_mutex_unlock(&groups_lock);
	if (g)
		return g;
	g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	g->stacks = mmap(NULL, (size_t)MAX_ITEMS * STACK, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (g->stacks == MAP_FAILED) {
		free(g);
		return NULL;
	}
	return g;
}

static void give_group(struct group *g)
{
	pthread_mutex_lock(&groups_lock);
	g->next_free = free_groups;
	free_groups = g;
	pthread_mutex_unlock(&groups_lock);
}

enum fake_end fake_run(const struct fake_launch *l)
{
	const struct fake_object *o = fake_module_object(l->module);
	const size_t shared = (size_t)(o->shared_end - o->shared);
	struct fake_state *s = o->state;
	struct group *g = take_group();

	if (!g) {
		fprintf(stderr, "fake_gpu: kernel %s: no memory for its stacks\n", l->kernel->name);
		return FAKE_FAILED;
	}
	fake_module_lock(l->module);
	g->launch = l;
	g->state = s;
	g->count = l->threads.x * l->threads.y * l->threads.z;
	g->end = FAKE_DONE;
	for (unsigned i = 0; i < g->count; i++)
		g->item[i].thread =
			(struct fake_dim){ i % l->threads.x, i / l->threads.x % l->threads.y,
					   i / l->threads.x / l->threads.y };
	s->threads = l->threads;
	s->blocks = l->blocks;
	s->warp = l->warp;
	s->check = l->check;
	s->group = g;
	s->barrier = at_barrier;
	s->exchange = at_exchange;
	s->access = at_access;
	s->misaligned = at_misaligned;
	s->stacks = (struct fake_span){ (uintptr_t)g->stacks, (size_t)MAX_ITEMS * STACK };
	memset(s->live, 0, sizeof s->live);
	for (unsigned z = 0; z < l->blocks.z; z++)
		for (unsigned y = 0; y < l->blocks.y; y++)
			for (unsigned x = 0; x < l->blocks.x && g->end == FAKE_DONE; x++) {
				s->block = (struct fake_dim){ x, y, z };
				// Poisons a register that no result may depend on.
				g->backwards = (x + y + z) & 1;
				if (shared)
					memset(o->shared, 0xff, shared); // NaNs: never written
				run_group(g);
			}
	const enum fake_end end = g->end;
	fake_module_unlock(l->module);
	give_group(g);
	return end;
}
