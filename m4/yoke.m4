# SPDX-License-Identifier: Apache-2.0
# What configure.ac needs again and again.

# YOKE_IF_FLAGS(flags, then, else): does the C compiler take these flags without a warning?
AC_DEFUN([YOKE_IF_FLAGS], [
	AC_MSG_CHECKING([whether $CC takes $1])
	yoke_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS -Werror $1"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [yoke_takes=yes], [yoke_takes=no])
	CFLAGS=$yoke_save_CFLAGS
	AC_MSG_RESULT([$yoke_takes])
	AS_IF([test $yoke_takes = yes], [$2], [$3])
])

# YOKE_ADD_FLAGS(variable, flag ..): appends each flag that the compiler takes.
AC_DEFUN([YOKE_ADD_FLAGS], [
	m4_foreach_w([yoke_flag], [$2], [
		YOKE_IF_FLAGS(yoke_flag, [$1="$$1 yoke_flag"])
	])
])

# YOKE_ATOMICS(then, else): does a program with atomic operations of 1 and 8 bytes link?
AC_DEFUN([YOKE_ATOMICS], [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdatomic.h>
	static _Atomic unsigned char one;
	static _Atomic unsigned long long eight;]],
	[[return atomic_exchange(&one, 1) + (int)atomic_fetch_add(&eight, 1);]])], [$1], [$2])])

# YOKE_NEED(variable, module, Debian package): a library that there is no yoke without.
AC_DEFUN([YOKE_NEED], [
	PKG_CHECK_MODULES([$1], [$2], [], [
		AC_MSG_ERROR([$2 is missing; on Debian and Ubuntu: apt-get install $3])
	])
])

# YOKE_WITH(name, help): --with-name=yes|no|check in $with_name, "check" by default.
AC_DEFUN([YOKE_WITH], [
	AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=yes|no|check], [$2 @<:@check@:>@])], [],
		[with_$1=check])
	AS_CASE([$with_$1], [yes|no|check], [],
		[AC_MSG_ERROR([--with-$1=$with_$1: wants yes, no or check])])
])

# YOKE_MODULE(name): after YOKE_WITH; what is opened at run time is not built without shared libraries.
AC_DEFUN([YOKE_MODULE], [
	AS_IF([test "$enable_shared" = no], [AS_CASE([$with_$1],
		[no], [],
		[check], [with_$1=no why_$1="a module; --disable-shared"],
		[AC_MSG_ERROR([--with-$1 builds a module, which --disable-shared excludes])])])
])

# YOKE_WITH_FOLDER(name, help, CONDITIONAL): the same for what is opened at run time, so that it can always be
# built; a folder, absolute, is where its libraries are looked for first: YK_NATIVE_DIR in $CONDITIONAL_CPPFLAGS.
AC_DEFUN([YOKE_WITH_FOLDER], [
	AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=yes|no|check|DIR], [$2 @<:@check@:>@])], [],
		[with_$1=check])
	have_$1=yes why_$1="not asked for" $3_CPPFLAGS=
	YOKE_MODULE([$1])
	AS_CASE([$with_$1], [yes|check], [], [no], [have_$1=no],
		[/*], [$3_CPPFLAGS="-DYK_NATIVE_DIR='\"$with_$1\"'"],
		[AC_MSG_ERROR([--with-$1=$with_$1: wants yes, no, check or an absolute folder])])
	AC_SUBST([$3_CPPFLAGS])
	AM_CONDITIONAL([$3], [test $have_$1 = yes])
])

# YOKE_MISSING(name, what, Debian package): stops when --with-name=yes asked for it; else keeps the
# reason for the table in $why_name.
AC_DEFUN([YOKE_MISSING], [
	AS_IF([test "$with_$1" = yes],
		[AC_MSG_ERROR([--with-$1: $2 not found; on Debian and Ubuntu: apt-get install $3])])
	why_$1="$2 not found ($3)"
])
