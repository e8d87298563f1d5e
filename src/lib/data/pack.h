// SPDX-License-Identifier: Apache-2.0
// Packing: distributes texts of different lengths over windows of equal size.
#ifndef YK_DATA_PACK_H
#define YK_DATA_PACK_H

#include <stdbool.h>
#include <stdint.h>

struct yk_packing {
	int64_t windows;
	int64_t *first; // [windows + 1]: index in `text` of each window's first text
	int64_t *text;  // numbers of the texts by window, ascending; first texts ascend too
};

// Distributes texts begin .. end - 1, of length[i] <= room each, over windows of `room`. pack: into
// few windows, by best fit decreasing (Johnson 1973: at most 11/9 of the optimum); otherwise one
// window per text. ENOMEM.
int yk_packing_make(struct yk_packing *, const int64_t *length, int64_t begin, int64_t end,
		    int64_t room, bool pack);
void yk_packing_fini(struct yk_packing *);

#endif
