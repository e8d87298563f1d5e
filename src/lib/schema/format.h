// SPDX-License-Identifier: Apache-2.0
// Patterns of the formats of strings.
#ifndef YK_SCHEMA_FORMAT_H
#define YK_SCHEMA_FORMAT_H

// The pattern of a format; NULL: an unknown one.
const char *yk_format_pattern(const char *name);
// The names, separated by commas.
#define YK_FORMATS "date, date-time, time, duration, uuid, email, hostname, ipv4, ipv6, uri"

#endif
