// SPDX-License-Identifier: Apache-2.0
// Which files `yoke fit` and `yoke apply` are about to write.  All of them are checked before the first is written: a file that
// the command reads is never replaced, and another one that exists only with overwrite=1.
#ifndef YK_TOOL_FIT_OUT_H
#define YK_TOOL_FIT_OUT_H

#include <stdbool.h>
#include <stddef.h>

// Paths of files.
struct yk_file_list {
	char **path;
	size_t n, room;
};
int yk_file_list_add(struct yk_file_list *, const char *path); // a copy; ENOMEM
void yk_file_list_fini(struct yk_file_list *);

// EINVAL names a file of `to` that is one of `from`, through links of any kind or as header and data of one cube; that is named
// twice; or that exists, unless overwrite.
int yk_out_check(const struct yk_file_list *to, const struct yk_file_list *from, bool overwrite);

// The same, but a file of `to` may have the name of one of `from` with another suffix, as in a conversion.
int yk_out_convert(const struct yk_file_list *to, const struct yk_file_list *from, bool overwrite);

// The files of a run in its folder.  EINVAL: there is a run and neither resumes nor overwrite, or the configuration that was
// read would be replaced.  resumes: false unless the folder has a checkpoint.
int yk_out_run(const char *folder, const char *configuration, bool resume, bool overwrite, bool *resumes);
// Removes the states and checkpoints of the run that is replaced.
void yk_out_clear(const char *folder);

#endif
