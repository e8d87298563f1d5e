// SPDX-License-Identifier: Apache-2.0
// Tests copies between devices: by the backend, or through host memory if the backend has no
// direct copy or the devices belong to different backends. A copy waits for earlier work on both
// devices and writes nothing outside its range.
// The program runs itself once for each pair of devices.

#include "config.h"

#include "base/error.h"
#include "device/device.h"
#include "fault/fault.h"
#include "tap.h"
#include "yoke.h"

enum { ROOM = 10 << 20, ROUNDS = 24 };

struct side {
	struct yk_device *device;
	struct yk_queue *queue;
	void *segment;
	unsigned char *image; // its contents
};

static unsigned char *bytes_of(uint64_t n)
{
	unsigned char *p = malloc(n);
	for (uint64_t i = 0, word = 0; p && i < n; i++, word >>= 8)
		p[i] = (unsigned char)(word = i % 8 ? word : rnd());
	return p;
}

static int put(struct side *s, uint64_t at, const unsigned char *from, uint64_t n)
{
	memcpy(s->image + at, from, n);
	return s->device->ops->put(s->queue->handle, s->segment, at, from, n);
}

static void open_side(struct side *s, struct yk_device *d)
{
	*s = (struct side){ .device = d, .image = bytes_of(ROOM) };
	bool good = s->image && !yk_queue_new(d, YOKE_QUEUE_COMPUTE, &s->queue) &&
		    !d->ops->segment_new(d->index, YOKE_SEGMENT_DEVICE, ROOM, &s->segment) &&
		    !put(s, 0, s->image, ROOM) && !yk_queue_wait(s->queue);
	if (!ok(good, "%s is ready %s", d->id, yoke_error()))
		exit(done());
}

static uint64_t differ(const struct side *s)
{
	unsigned char *got = calloc(1, ROOM);
	uint64_t bad = 0;
	int err = s->device->ops->get(s->queue->handle, s->segment, 0, got, ROOM);
	err = err ? err : yk_queue_wait(s->queue);
	for (uint64_t i = 0; i < ROOM; i++)
		bad += got[i] != s->image[i];
	free(got);
	return err ? ROOM : bad;
}

// Bytes written to one device are copied to the other while the write may still be pending; once an
// event reports that the copy is complete, other bytes replace them.
static void back_and_forth(struct side *side)
{
	uint64_t bad = 0;
	int err = 0;
	for (int round = 0; round < ROUNDS && !err; round++) {
		struct side *from = &side[round & 1], *to = &side[!(round & 1)];
		const uint64_t n = round % 8 == 7 ? ROOM - 2000 : (uint64_t)rnd_int(1, 100000);
		const uint64_t at = (uint64_t)rnd_int(0, 999), there = (uint64_t)rnd_int(0, 999);
		unsigned char *data = bytes_of(n), *other = bytes_of(n);
		struct yk_event *e = NULL;
		err = put(from, at, data, n);
		err = err ? err : yk_copy_between(to->queue, to->segment, there, from->queue,
						  from->segment, at, n);
		memcpy(to->image + there, data, n);
		err = err ? err : yk_event_mark(to->queue, &e);
		err = err ? err : yk_event_before(e, from->queue);
		yk_event_unref(e);
		err = err ? err : put(from, at, other, n);
		bad += err ? 0 : differ(to) + differ(from);
		free(data);
		free(other);
	}
	ok(!err && !bad, "copies back and forth between devices: %llu bytes differ %s",
	   (unsigned long long)bad, yoke_error());
}

static int child(const char *first, const char *second)
{
	struct side side[2];
	size_t n, found = 0;
	struct yk_device *const *all = yk_devices_found("*", &n), *two[2] = { NULL, NULL };
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < 2; k++)
			if (!strcmp(all[i]->id, k ? second : first)) {
				two[k] = all[i];
				found++;
			}
	if (found != 2) {
		skip("copies", "the devices are not there");
		return done();
	}
	tap_seed();
	for (int k = 0; k < 2; k++)
		open_side(&side[k], two[k]);
	const struct fault_control *ctl = two[0]->ops->ext("fault");
	back_and_forth(side);
	const bool native = two[0]->ops == two[1]->ops && ctl && !getenv("YOKE_FAULT_LACKS");
	if (ctl)
		ok(ctl->calls("copy") == (native ? ROUNDS : 0),
		   "%ld copies were made by the backend", ctl->calls("copy"));
	if (native) {
		ctl->arm("copy", 1);
		int err = yk_copy_between(side[1].queue, side[1].segment, 0, side[0].queue,
					  side[0].segment, 0, 8);
		ok(err == YOKE_EDEVICE, "a copy that fails: %s", yoke_error_name(err));
		yoke_error_clear();
	}
	int err = yk_copy_between(side[0].queue, side[0].segment, ROOM / 2, side[0].queue,
				  side[0].segment, 0, ROOM / 4);
	memcpy(side[0].image + ROOM / 2, side[0].image, ROOM / 4);
	ok(!err && !differ(&side[0]), "a copy within one device %s", yoke_error());
	for (int k = 0; k < 2; k++) {
		yk_queue_free(side[k].queue);
		two[k]->ops->segment_free(two[k]->index, side[k].segment);
		free(side[k].image);
	}
	return done();
}

static void pair(const char *self, const char *settings, const char *first, const char *second)
{
	char command[2048];
	snprintf(command, sizeof command, "%s '%s' %s %s 2>&1", settings, self, first, second);
	ok(tap_run(command), "%s and %s %s", first, second, settings);
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return child(argv[1], argv[2]);
	const char *opencl = getenv("YOKE_TEST_OPENCL");
	tap_plugin_path();
	setenv("YOKE_FAULT_DEVICES", "2", 1);
	setenv("POCL_DEVICES", "pthread pthread", 1);
	pair(argv[0], "", "fault:0", "fault:1");
	pair(argv[0], "YOKE_FAULT_DEFER=1 YOKE_FAULT_LAG=2 YOKE_FAULT_HOST=0", "fault:0",
	     "fault:1");
	pair(argv[0], "YOKE_FAULT_LACKS=table_between,event_after YOKE_FAULT_LAG=2", "fault:0",
	     "fault:1");
	pair(argv[0], "YOKE_FAULT_DEFER=1", "fault:0", "cpu:0");
	if (opencl) {
		pair(argv[0], "", "opencl:0", "opencl:1");
		pair(argv[0], "", "opencl:0", "cpu:0");
	} else {
		skip("opencl", "it is not built");
	}
	return done();
}
