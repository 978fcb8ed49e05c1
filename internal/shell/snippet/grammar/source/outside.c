// SPDX-License-Identifier: Apache-2.0
//
// outside.c stands in for what the C library would import from its host: the parser
// names these for its debug output and its clock, which are never used here.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#undef stderr
FILE *const stderr = 0;

int fprintf(FILE *f, const char *format, ...) { (void)f; (void)format; return 0; }
int snprintf(char *s, size_t n, const char *format, ...) { (void)format; if (n) *s = 0; return 0; }
int vsnprintf(char *s, size_t n, const char *format, va_list list) { (void)format; (void)list; if (n) *s = 0; return 0; }
int fputs(const char *s, FILE *f) { (void)s; (void)f; return 0; }
int fputc(int c, FILE *f) { (void)f; return c; }
int fclose(FILE *f) { (void)f; return 0; }
FILE *fdopen(int fd, const char *mode) { (void)fd; (void)mode; return 0; }
size_t fwrite(const void *p, size_t size, size_t n, FILE *f) { (void)p; (void)size; (void)f; return n; }
int clock_gettime(clockid_t id, struct timespec *t) { (void)id; *t = (struct timespec){0}; return 0; }
void abort(void) { __builtin_trap(); }
_Noreturn void __assert_fail(const char *a, const char *b, int c, const char *d) { (void)a; (void)b; (void)c; (void)d; __builtin_trap(); }
