// SPDX-License-Identifier: Apache-2.0
// Tests that backends refuse invalid calls: conformance cases with one property changed so that
// they no longer match the op's definition in yoke-plugin.h. The core makes no such calls;
// refusing them catches bugs.

#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "conform/sample.h"
#include "device/device.h"
#include "tap.h"

static struct yk_case c; // current case: its pointers are to itself
static struct yk_device *device;

// A case of the op that the device accepts, with a map or without; false: none.
static bool find(int code, bool mapped, struct yk_arena *memory)
{
	const struct yk_case_row *row = yk_case_row(code);
	for (uint32_t n = 0; n < row->full; n++)
		if (yk_case_make(&c, row, yoke_f32, n, 1, 0, memory) &&
		    (c.op.map != NULL) == mapped && c.view[0].rank >= 2 && c.array[0].n > 8 &&
		    device->ops->can(device->index, &c.op))
			return true;
	return false;
}

static struct yk_case good; // which the device accepts

// The modified case is refused; then it is restored.
static void refused(const char *what)
{
	ok(!device->ops->can(device->index, &c.op), "%s refuses %s %s", device->id,
	   yk_case_row(c.op.code)->name, what);
	c = good;
}

static void contractions(struct yk_arena *memory)
{
	if (!ok(find(YOKE_OP_CONTRACT, false, memory), "%s supports contractions", device->id))
		return;
	struct yoke_view *a = &c.view[1], *b = &c.view[2];
	const int row = b->rank - 2;
	good = c;
	b->dims[row]++;
	refused("whose shapes do not fit");
	a->dtype = yoke_f16;
	refused("of two dtypes");
	for (int i = 0; i < 3; i++)
		c.view[i].dtype = yoke_bool;
	refused("of bools");
	a->kind = YOKE_VIEW_SCALAR;
	refused("of a number");
	c.op.map = &c.map;
	c.map = (struct yoke_map){ .size = sizeof c.map };
	refused("with a map without results");
}

static void products(struct yk_arena *memory) // with a fused map
{
	if (!ok(find(YOKE_OP_CONTRACT, true, memory), "%s supports maps fused after contractions",
		device->id))
		return;
	good = c;
	c.op.attr[0].i = yoke_f64;
	refused("as a product of another dtype");
	c.op.nin--;
	refused("without an input of its map");
	c.op.map = NULL;
	refused("with an operand left over");
	c.map.insn[c.map.out[0]].op = 999;
	refused("with an unknown instruction");
	c.view[c.op.nout + 2].dims[1]++;
	refused("with an input of another shape");
}

static void maps(struct yk_arena *memory)
{
	if (!ok(find(YOKE_OP_MAP, true, memory), "%s supports maps", device->id))
		return;
	const uint16_t last = c.map.out[0];
	good = c;
	c.map.insn[last].op = 999;
	refused("of an unknown instruction");
	c.map.insn[last].op = YOKE_MAP_AND;
	c.map.insn[last].dtype = yoke_f32;
	refused("that is of another dtype's instructions");
	c.map.insn[last].a = last;
	refused("that reads itself");
	c.map.insn[0].a = c.map.nin;
	refused("of an input there is not");
	c.map.out[0] = YOKE_MAP_MAX_INSNS - 1;
	refused("of a result there is not");
	c.view[0].dtype = c.view[0].dtype == yoke_f64 ? yoke_f32 : yoke_f64;
	refused("into another dtype");
}

static void all(const char *list)
{
	struct yk_arena memory = { 0 };
	device = yk_device_choose(list);
	if (!device) {
		skip(list, yoke_error());
		yoke_error_clear();
		return;
	}
	contractions(&memory);
	products(&memory);
	maps(&memory);
	yk_arena_fini(&memory);
}

int main(void)
{
	const char *module = getenv("YOKE_TEST_OPENCL"),
		   *slash = module ? strrchr(module, '/') : NULL;
	char folder[4096] = "";
	if (slash) {
		snprintf(folder, sizeof folder, "%.*s", (int)(slash - module), module);
		setenv("YOKE_PLUGIN_PATH", folder, 1);
	}
	all("cpu");
	if (slash)
		all("opencl");
	return done();
}
