// SPDX-License-Identifier: Apache-2.0
// Writes low-rank adapters as a folder of PEFT.
#include "config.h"

#include "base/error.h"
#include "export/export.h"

static int write_folder(const struct yk_export *x, const struct yk_export_options *o,
			const char *folder)
{
	(void)o;
	return yk_adapter_write(&x->adapter, x->read, &x->shape, x->base ? x->base : x->path,
				folder);
}

int yk_export_peft(const char *path, const char *to, const struct yk_export_options *o)
{
	struct yk_export x;
	int e = yk_export_target(path, to, o->overwrite);
	if (e < 0)
		return e;
	e = yk_export_files(path, o, &x);
	if (e == 0 && !x.adapter.n)
		e = yk_fail(YOKE_EINVAL,
			    "format=peft: %s has no adapters; name some with adapter=FOLDER", path);
	if (e == 0)
		e = yk_export_folder(to, "adapter_config.json", write_folder, &x, o);
	yk_export_close(&x);
	return e;
}
