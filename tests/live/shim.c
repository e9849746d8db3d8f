/* Between a process and the disk: writes down what is done to files of a store, and fails what it is told to.

   Loaded with LD_PRELOAD. UNFOG_TRACE names the file that is written. Each record is a line
       kind path offset size
   and then `size` bytes. Kinds: W a write, T a file cut to `offset` bytes, S a file synced, U a file removed,
   A what went to the standard output. unfog_arm(n, error) lets the n-th call from now on fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int left = 0, error = 0;

int unfog_arm(int calls, int code) {
    int unused = left;
    left = calls;
    error = code;
    return unused;
}

static const char *place(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, 4095);
    path[size < 0 ? 0 : size] = 0;
    return strstr(path, ".unfog") ? path : NULL;
}

static void note(char kind, const char *path, long offset, const void *data, long size) {
    const char *file = getenv("UNFOG_TRACE");
    if (!file) return;
    char *text = malloc(8192 + size);
    int head = snprintf(text, 8192, "%c %s %ld %ld\n", kind, path, offset, size);
    if (size) memcpy(text + head, data, size);
    int out = syscall(SYS_open, file, O_WRONLY | O_CREAT | O_APPEND, 0644);
    syscall(SYS_write, out, text, head + size);
    syscall(SYS_close, out);
    free(text);
}

static int fails(void) {
    if (left > 0 && --left == 0) {
        errno = error;
        return 1;
    }
    return 0;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    char path[4096];
    if (!place(fd, path)) return syscall(SYS_pwrite64, fd, data, size, offset);
    if (fails()) return -1;
    ssize_t done = syscall(SYS_pwrite64, fd, data, size, offset);
    if (done > 0) note('W', path, offset, data, done);
    return done;
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { return pwrite64(fd, data, size, offset); }

ssize_t write(int fd, const void *data, size_t size) {
    char path[4096];
    if (place(fd, path) && fails()) return -1;
    ssize_t done = syscall(SYS_write, fd, data, size);
    if (fd == 1 && done > 0) note('A', "-", 0, data, done);
    return done;
}

static int synced(int fd, long number) {
    char path[4096];
    if (!place(fd, path)) return syscall(number, fd);
    if (fails()) return -1;
    int done = syscall(number, fd);
    if (done == 0) note('S', path, 0, NULL, 0);
    return done;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

int ftruncate64(int fd, off64_t size) {
    char path[4096];
    if (!place(fd, path)) return syscall(SYS_ftruncate, fd, size);
    if (fails()) return -1;
    int done = syscall(SYS_ftruncate, fd, size);
    if (done == 0) note('T', path, size, NULL, 0);
    return done;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int unlink(const char *path) {
    if (strstr(path, ".unfog") && fails()) return -1;
    int done = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (done == 0 && strstr(path, ".unfog")) note('U', path, 0, NULL, 0);
    return done;
}

int rename(const char *from, const char *to) {
    if (strstr(to, ".unfog") && fails()) return -1;
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
