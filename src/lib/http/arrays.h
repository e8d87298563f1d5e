// SPDX-License-Identifier: Apache-2.0
// Arrays in the bodies of requests and replies: nested lists of JSON, or .npy.
#ifndef YK_HTTP_ARRAYS_H
#define YK_HTTP_ARRAYS_H

#include "tokenizer/pieces.h"
#include "yoke-serve.h"

// Reads an array and converts it to a dtype; the caller frees the data.  EFORMAT, ERANGE: a number
// that the dtype does not have; ENOMEM.
int yk_array_of_json(const char *text, size_t bytes, int dtype, struct yoke_serve_array *to);
int yk_array_of_npy(const char *data, size_t bytes, int dtype, struct yoke_serve_array *to);
// Appends an array.  EDTYPE: not f32, f64, i32 or i64.  ENOMEM is the string's flag.
int yk_array_to_json(const struct yoke_serve_array *, struct yk_string *);
int yk_array_to_npy(const struct yoke_serve_array *, struct yk_string *);

// Elements of all axes but the first; and the bytes of an element.
int64_t yk_array_sample(const struct yoke_serve_array *);
size_t yk_array_element(int dtype);

#endif
