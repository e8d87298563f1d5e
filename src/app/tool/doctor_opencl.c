// SPDX-License-Identifier: Apache-2.0
// Examines OpenCL: its loader, the directory that lists its drivers, each driver, and the device
// nodes.
#include "config.h"

#include "tool/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/child.h"
#include "device/icd.h"
#include "device/nodes.h"

#define MAX_ANSWER 65536 // capacity of a pipe

// Splits a line at tabs, in place; missing fields are "".
static int fields(char *line, char *to[5])
{
	int n = 0;
	for (char *word; n < 5 && (word = strsep(&line, "\t"));)
		to[n++] = word;
	for (int i = n; i < 5; i++)
		to[i] = "";
	return n;
}

// ---- the loader ----

static json_t *loader(const char *helper, char *answer, json_t *advice)
{
	char outcome[256], *field[5];
	int answered =
		yk_child_run(helper, "--loader", NULL, answer, MAX_ANSWER, outcome, sizeof outcome);

	if (!*outcome && answered > 0) {
		answer[strcspn(answer, "\n")] = '\0';
		fields(answer, field);
		if (!strcmp(field[0], "loader"))
			return json_pack("{s:s, s:s, s:s, s:s}", "state", "found", "path", field[1],
					 "name", field[2], "why", "");
		snprintf(outcome, sizeof outcome, "%s", field[1]);
	}
	yk_doctor_add(advice, "the OpenCL loader libOpenCL.so.1 is missing: install "
			      "ocl-icd-libopencl1, or your system's equivalent");
	return json_pack("{s:s, s:s, s:s, s:s}", "state", "missing", "path", "", "name", "", "why",
			 outcome);
}

// ---- drivers ----

static const char *const found_words[] = {
#define X(name, text) [YK_ICD_##name] = text,
	YK_ICD_STATES(X)
#undef X
};

static json_t *vendors(const struct yk_icds *icds, json_t *advice)
{
	const char *why = "";

	switch (icds->state) {
	case YK_ICD_FOUND:
		break;
	case YK_ICD_EMPTY:
		why = "it contains no .icd file";
		yk_doctor_add(advice,
			      "%s lists no OpenCL driver: install your GPU vendor's, or "
			      "pocl-opencl-icd for CPUs",
			      icds->path);
		break;
	case YK_ICD_MISSING:
		why = strerror(icds->error);
		yk_doctor_add(advice,
			      *icds->from ?
				      "%s does not exist: correct or unset %s" :
				      "%s does not exist: no OpenCL driver is installed%s; install "
				      "your GPU vendor's, or pocl-opencl-icd for CPUs",
			      icds->path, icds->from);
		break;
	case YK_ICD_UNREADABLE:
		why = strerror(icds->error);
		yk_doctor_add(advice, "%s is not readable by this user: run chmod go+rX on it",
			      icds->path);
		break;
	}
	return json_pack("{s:s, s:s, s:s, s:s}", "path", icds->path, "from", icds->from, "state",
			 found_words[icds->state], "why", why);
}

// Parses the output of yoke-probe for a driver; returns the driver's state.
static const char *digest(char *answer, json_t *platforms, char *why, size_t cap)
{
	const char *state = "no platform";
	char *field[5];

	for (char *line; (line = strsep(&answer, "\n"));) {
		fields(line, field);
		if (!strcmp(field[0], "error")) {
			if (!json_array_size(platforms))
				state = "fails";
			snprintf(why, cap, "%s", field[1]);
		} else if (!strcmp(field[0], "platform")) {
			long n = strtol(field[3], NULL, 10);
			json_array_append_new(platforms, json_pack("{s:s, s:s, s:I}", "name",
								   field[1], "version", field[2],
								   "devices", (json_int_t)n));
			if (*field[4])
				snprintf(why, cap, "platform %s %s", field[1], field[4]);
			else if (!n && !*why)
				snprintf(why, cap, "platform %s has no devices", field[1]);
			if (n)
				state = "works";
			else if (strcmp(state, "works"))
				state = "no devices";
		}
	}
	return state;
}

static const char *reason(const struct yk_icd *icd)
{
	if (icd->error)
		return strerror(icd->error);
	return icd->flaw ? icd->flaw : "it names no library";
}

static json_t *driver(const struct yk_icd *icd, const char *helper, char *answer, json_t *advice)
{
	char why[400] = "";
	const char *state = "fails", *name = *icd->file ? icd->file : icd->library;
	json_t *platforms = json_array();

	if (icd->error || !*icd->library) {
		state = "unreadable";
		snprintf(why, sizeof why, "%s%s", !icd->error && icd->flaw ? "it " : "",
			 reason(icd));
		yk_doctor_add(advice, "%s: reinstall its package or remove it", name);
	} else if (icd->flaw) {
		snprintf(why, sizeof why, "the file %s", icd->flaw);
		yk_doctor_add(advice,
			      "%s: replace its contents with the library's name on one line", name);
	} else {
		char outcome[256];
		int answered = yk_child_run(helper, "--icd", icd->library, answer, MAX_ANSWER,
					    outcome, sizeof outcome);
		if (*outcome || answered <= 0) {
			state = answered < 0 ? "not tried" : "crashes";
			snprintf(why, sizeof why, "%s", outcome);
			if (answered >= 0)
				yk_doctor_add(advice,
					      "%s: update that driver, or remove the file so that "
					      "the others can be used",
					      name);
		} else {
			state = digest(answer, platforms, why, sizeof why);
			if (!strcmp(state, "fails"))
				yk_doctor_add(advice,
					      "%s: its library %s cannot be used; reinstall its "
					      "package or remove the file",
					      name, icd->library);
		}
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:o}", "file", icd->file, "library", icd->library,
			 "state", state, "why", why, "platforms", platforms);
}

// ---- device nodes ----

json_t *yk_doctor_nodes(const char *dev, bool has_gpu, json_t *advice)
{
	struct yk_device_node node[64];
	size_t n = yk_nodes(dev, node, sizeof node / sizeof *node), open = 0;
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		const char *state = !node[i].error          ? "opens" :
				    node[i].error == EACCES ? "denied" :
							      "fails";
		open += !node[i].error;
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s}", "path", node[i].path,
						"group", node[i].group, "state", state, "why",
						node[i].error ? strerror(node[i].error) : ""));
		if (node[i].error == EACCES && *node[i].group)
			yk_doctor_add(advice,
				      "the GPU's device nodes belong to group %s: run usermod -aG "
				      "%s USER, then log in again",
				      node[i].group, node[i].group);
		else if (node[i].error == EACCES)
			yk_doctor_add(advice,
				      "only root may open %s: assign it to a group (udev rule) and "
				      "join that group",
				      node[i].path);
		else if (node[i].error == EPERM)
			yk_doctor_add(advice,
				      "%s is not accessible in this container: start the container "
				      "with that device",
				      node[i].path);
	}
	if (open && open == n && !has_gpu)
		yk_doctor_add(advice,
			      "%s belongs to a GPU without a driver that yoke can use: install its "
			      "OpenCL driver",
			      node[0].path);
	return list;
}

json_t *yk_doctor_opencl(bool load_drivers, bool has_gpu, json_t *advice)
{
	char helper[PATH_MAX], why[400] = "YOKE_BACKEND requests only the CPU backend";
	char *answer = malloc(MAX_ANSWER);
	struct yk_icds icds;
	json_t *o = json_object(), *drivers = json_array();
	bool can = load_drivers && answer &&
		   yk_child_helper(helper, why, sizeof why) == YK_HELPER_FOUND;

	json_object_set_new(o, "loader",
			    can ? loader(helper, answer, advice) :
				  json_pack("{s:s, s:s, s:s, s:s}", "state", "not tried", "path",
					    "", "name", "", "why", why));
	yk_icds_find(&icds);
	json_object_set_new(o, "vendors", vendors(&icds, advice));
	for (size_t i = 0; i < icds.n; i++)
		json_array_append_new(
			drivers, can ? driver(&icds.at[i], helper, answer, advice) :
				       json_pack("{s:s, s:s, s:s, s:s, s:[]}", "file",
						 icds.at[i].file, "library", icds.at[i].library,
						 "state", "not tried", "why", why, "platforms"));
	yk_icds_free(&icds);
	free(answer);
	json_object_set_new(o, "drivers", drivers);
	json_object_set_new(o, "nodes", yk_doctor_nodes("/dev", has_gpu, advice));
	return o;
}
