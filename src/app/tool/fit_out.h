// SPDX-License-Identifier: Apache-2.0
// Checks the output files of `yoke fit` and `yoke apply`. All are checked before the first is
// written: a file that the command reads is never replaced, and another existing file is replaced
// only with overwrite=1.
#ifndef YK_TOOL_FIT_OUT_H
#define YK_TOOL_FIT_OUT_H

#include <stdbool.h>
#include <stddef.h>

// A list of paths.
struct yk_file_list {
	char **path;
	size_t n, cap;
};
int yk_file_list_add(struct yk_file_list *, const char *path); // copies the path; ENOMEM
void yk_file_list_fini(struct yk_file_list *);

// The path of a file in a directory.
void yk_out_path(char to[4096], const char *folder, const char *file);

// EINVAL, with the file's name: a file in `to` is also in `from` (through any link, or as header
// and data of one cube), is named twice, or exists although `overwrite` is false.
int yk_out_check(const struct yk_file_list *to, const struct yk_file_list *from, bool overwrite);

// The same, for conversions: a file in `to` may differ from one in `from` by its suffix alone.
int yk_out_convert(const struct yk_file_list *to, const struct yk_file_list *from, bool overwrite);

// Checks the files of a run in its directory. EINVAL: the directory has a run and neither `resume`
// nor `overwrite` is set, or the configuration file that was read would be replaced. resumes: true
// only if the directory has a checkpoint.
int yk_out_run(const char *folder, const char *configuration, bool resume, bool overwrite,
	       bool *resumes);
// Removes the states and checkpoints of the run that is being replaced.
void yk_out_clear(const char *folder);

#endif
