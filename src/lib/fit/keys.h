// SPDX-License-Identifier: Apache-2.0
// Describes the keys of a JSON object as a table: default, allowed values, and where the value is
// stored.  Reading an object fills in missing keys, so that the settings in force can be written
// and read again.
#ifndef YK_FIT_KEYS_H
#define YK_FIT_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

enum yk_fit_kind { YK_FIT_WHOLE, YK_FIT_REAL, YK_FIT_FLAG, YK_FIT_WORD, YK_FIT_TEXT, YK_FIT_OTHER };
enum { YK_FIT_TEXT_SIZE = 512 };

struct yk_fit_key {
	const char *name, *train; // train: its name in `yoke train`, also accepted, or NULL
	enum yk_fit_kind kind;
	const char *def;     // as JSON
	double min, max;  // bounds of numbers
	const char *words;   // space-separated; the value is the index of the word
	const char *train_words; // the same words in `yoke train`, also accepted, or NULL
// Offset in the filled struct; its type: int64_t; double, NaN for null; bool; int; char
// [YK_FIT_TEXT_SIZE], "" for null.
	size_t at;
	// parser of an OTHER key
	int (*take)(const struct yk_fit_key *, const char *where, const json_t *, void *to);
};

// Reads n keys of an object into a struct, and adds missing keys to the object with their defaults.
// Names and words of `yoke train` are replaced by those of the table.
// EINVAL: an unknown key (suggests the nearest), or a value that is not allowed.
int yk_fit_keys(json_t *object, const char *where, const struct yk_fit_key *, int n, void *to);
// The trainer's name of a key that `yoke train` names differently; otherwise the name itself.
const char *yk_trainer_key(const char *name);
// EINVAL if the object has a key outside the n names (suggests the nearest), or is not an object.
int yk_parse_known(json_t *object, const char *where, const char *const *names, int n);
// Index of a word in a space-separated list; -1: not found.
int yk_parse_word(const json_t *, const char *words);
// The word at an index, as JSON.
json_t *yk_parse_word_at(const char *words, int place);

#endif
