// SPDX-License-Identifier: Apache-2.0
// Compares a module's ELF header with the header of the running code: dlopen reports a module of
// another processor as "No such file or directory".
#include "config.h"

#include "device/foreign.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 20, CLASS = 4, DATA = 5, MACHINE = 18 }; // bytes of the header, and fields in it

static const struct {
	int number;
	const char *name;
} machines[] = { { 3, "x86" },      { 8, "MIPS" },       { 20, "PowerPC" }, { 21, "PowerPC" },
		 { 22, "S/390" },   { 40, "Arm" },       { 62, "x86" },     { 183, "Arm" },
		 { 243, "RISC-V" }, { 258, "LoongArch" } };

// "x86, 64 bits, little-endian"
static void describe(const unsigned char *head, char *to, size_t cap)
{
	const bool big = head[DATA] == 2;
	const int number = big ? head[MACHINE] << 8 | head[MACHINE + 1] :
				 head[MACHINE + 1] << 8 | head[MACHINE];
	const char *name = NULL;
	char other[32];
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
		name = machines[i].number == number ? machines[i].name : name;
	snprintf(other, sizeof other, "ELF machine %d", number);
	snprintf(to, cap, "%s, %d bits, %s-endian", name ? name : other, head[CLASS] == 1 ? 32 : 64,
		 big ? "big" : "little");
}

bool yk_elf_foreign(const char *path, char *why, size_t cap)
{
	unsigned char its[HEAD], own[HEAD];
	char built[80], runs[80];
	Dl_info info;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool is = fd >= 0 && read(fd, its, HEAD) == HEAD &&
			!memcmp(its,
				"\x7f"
				"ELF",
				4);
	if (fd >= 0)
		close(fd);
	// the base of a program or library in memory is its header
	if (!is || !dladdr((void *)(uintptr_t)yk_elf_foreign, &info) || !info.dli_fbase)
		return false;
	memcpy(own, info.dli_fbase, HEAD);
	if (memcmp(own,
		   "\x7f"
		   "ELF",
		   4) ||
	    (its[CLASS] == own[CLASS] && its[DATA] == own[DATA] &&
	     !memcmp(its + MACHINE, own + MACHINE, 2)))
		return false;
	describe(its, built, sizeof built);
	describe(own, runs, sizeof runs);
	snprintf(why, cap,
		 "not loaded: it was built for another processor: %s; this program is for %s",
		 built, runs);
	return true;
}
