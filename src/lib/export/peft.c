// SPDX-License-Identifier: Apache-2.0
// Writes low-rank adapters as a folder of PEFT.
#include "config.h"

#include "base/error.h"
#include "export/export.h"
#include "models/pretrained.h"

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

int yoke_model_save_adapter(const yoke_model *m, const char *folder, int overwrite)
{
	if (!m || !folder)
		return yk_fail(YOKE_EINVAL, "model_save_adapter: an argument is NULL");
	const struct yk_export_options o = { .overwrite = overwrite };
	struct yk_export x = {
		.path = m->path, .base = m->is.base, .read = m->is.family, .shape = m->is.net->shape
	};
	int e = m->is.net->adapters ?
			yk_export_target(m->path, folder, o.overwrite) :
			yk_fail(YOKE_EINVAL, "model_save_adapter: %s has no adapters", m->path);
	if (e == 0)
		e = yk_adapter_copy(m->is.net, &x.adapter);
	if (e == 0)
		e = yk_export_folder(folder, "adapter_config.json", write_folder, &x, &o);
	yk_adapter_close(&x.adapter);
	return e;
}
