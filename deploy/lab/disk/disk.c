/*
 * Makes the disk of the program that it is preloaded into (LD_PRELOAD) slow, and keeps
 * what a loss of power takes from it.
 *
 * Slow: fsync and fdatasync take as many microseconds longer as the file says that
 * LAB_SYNC_DELAY names. The file is read again while a sync waits, so a new value counts
 * for it too. The file that LAB_SYNC_HELD names gets a byte for each sync that has to
 * wait.
 *
 * Loss of power: the directory that LAB_UNSYNCED names gets a log for each file that is
 * written, with what undoes the writes since its last sync:
 *
 *	synced, end                            where in the log those begin and end
 *	offset, size before, n, n old bytes    of each write, truncation or extension
 *
 * Each is a 64-bit number. A log is named by its file's inode and time of birth, so it
 * belongs to the file whatever that is called, and to no later file with that inode. All
 * processes share the logs. A log is locked during a write. So writes that were in the
 * log when a sync began are on disk when it ends.
 *
 * Not seen, and so taken to be on disk at once: the names of files, preallocation,
 * O_TRUNC, copies within the kernel, and writes by stdio, shared mappings, libaio and
 * io_uring. sync and syncfs are not seen either, so what they sync is taken to be lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* A test without its disk would prove nothing, so the program ends. */
static void fail(const char *what) {
	dprintf(STDERR_FILENO, "lab: the disk of a test: %s: %m\n", what);
	abort();
}

static long long wanted(void) {
	const char *path = getenv("LAB_SYNC_DELAY");
	char text[32];
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return atoll(text);
}

static long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void count(void) {
	const char *path = getenv("LAB_SYNC_HELD");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
	if (fd < 0 || syscall(SYS_write, fd, "x", 1) != 1)
		fail("count a delayed sync");
	close(fd);
}

static void delay(void) {
	int counted = 0;
	for (long long began = now(), left; (left = began + wanted() - now()) > 0;) {
		if (!counted++)
			count();
		usleep(left < 1000 ? left : 1000);
	}
}

struct header {
	int64_t synced, end;
};

struct entry {
	int64_t offset, size, n;
};

static char unsynced[PATH_MAX]; /* the directory of the logs; empty: there are none */

__attribute__((constructor)) static void begin(void) {
	const char *dir = getenv("LAB_UNSYNCED");
	if (dir)
		snprintf(unsynced, sizeof unsynced, "%s", dir);
}

static void lock(int log, int how) {
	while (flock(log, how))
		if (errno != EINTR)
			fail("lock a log");
}

static struct header read_header(int log) {
	struct header h;
	if (pread(log, &h, sizeof h, 0) != sizeof h || h.end == 0)
		h.synced = h.end = sizeof h; /* the log is new, or whoever made it was killed before it wrote this */
	return h;
}

static void write_at(int log, const void *bytes, size_t n, int64_t offset) {
	if (syscall(SYS_pwrite64, log, bytes, n, offset) != (long)n)
		fail("write a log");
}

/* Unlocks first: a child that was forked meanwhile has the log open, too. */
static void close_log(int log) {
	lock(log, LOCK_UN);
	close(log);
}

/* Closes a log, if there is one, once the change is made, and returns its result. */
static long logged(int log, long result) {
	int before = errno;
	if (log >= 0)
		close_log(log);
	errno = before;
	return result;
}

/* Returns the log of a regular file, locked, or -1 for what else may be written. */
static int open_log(int fd, struct statx *file) {
	char path[PATH_MAX + 64];
	if (!*unsynced || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, file) ||
	    !S_ISREG(file->stx_mode) || !file->stx_nlink)
		return -1;
	snprintf(path, sizeof path, "%s/%llx-%llx-%x", unsynced, (unsigned long long)file->stx_ino,
		 (unsigned long long)file->stx_btime.tv_sec, file->stx_btime.tv_nsec);
	int log = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (log < 0)
		fail(path);
	lock(log, LOCK_EX);
	if (statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, file)) /* it may have changed before the lock */
		fail("look at a file");
	return log;
}

/* Copies n bytes of a file, which may be open for writing only, or for direct I/O. */
static void save(int fd, int64_t offset, int64_t n, int log, int64_t at) {
	char path[32], bytes[16384];
	if (n == 0)
		return;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		fail(path);
	while (n > 0) {
		ssize_t got = pread(file, bytes, n < (int64_t)sizeof bytes ? n : (int64_t)sizeof bytes, offset);
		if (got <= 0)
			fail("read what is to be overwritten");
		write_at(log, bytes, got, at);
		offset += got;
		at += got;
		n -= got;
	}
	close(file);
}

/*
 * Logs that n bytes at an offset will change. The entry counts from when the header says
 * so: a program may be killed in the middle.
 */
static void log_change(int log, struct statx *file, int fd, int64_t offset, int64_t n) {
	int64_t size = file->stx_size, left = offset < size ? size - offset : 0;
	struct entry e = {offset, size, n < left ? n : left};
	struct header h = read_header(log);
	write_at(log, &e, sizeof e, h.end);
	save(fd, offset, e.n, log, h.end + sizeof e);
	h.end += sizeof e + e.n;
	write_at(log, &h, sizeof h, 0);
}

enum { HERE = -1 };

/* Logs a write of n bytes at an offset, or where the file stands. */
static int log_write(int fd, int64_t offset, int64_t n) {
	int before = errno, log;
	struct statx file;
	if ((log = open_log(fd, &file)) >= 0) {
		int flags = fcntl(fd, F_GETFL);
		if (offset == HERE) /* appending is undone by the size alone, wherever the file stands */
			offset = lseek(fd, 0, SEEK_CUR);
		if (flags & O_DSYNC || offset < 0 || (flags & O_ACCMODE) == O_RDONLY) {
			close_log(log); /* it is on disk when it ends, or fails */
			log = -1;
		} else {
			log_change(log, &file, fd, offset, n);
		}
	}
	errno = before;
	return log;
}


static int64_t bytes_of(const struct iovec *parts, int n) {
	int64_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += parts[i].iov_len;
	return sum;
}

ssize_t write(int fd, const void *bytes, size_t n) {
	int log = log_write(fd, HERE, n);
	return logged(log, syscall(SYS_write, fd, bytes, n));
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
	int log = log_write(fd, HERE, bytes_of(parts, n));
	return logged(log, syscall(SYS_writev, fd, parts, n));
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset) {
	int log = log_write(fd, offset, n);
	return logged(log, syscall(SYS_pwrite64, fd, bytes, n, offset));
}

ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t offset) {
	int log = log_write(fd, offset, bytes_of(parts, n));
	return logged(log, syscall(SYS_pwritev, fd, parts, n, offset, 0L));
}

int ftruncate(int fd, off_t size) {
	int before = errno, log;
	struct statx file;
	if ((log = size < 0 ? -1 : open_log(fd, &file)) >= 0)
		log_change(log, &file, fd, size, INT64_MAX);
	errno = before;
	return logged(log, syscall(SYS_ftruncate, fd, size));
}

ssize_t pwrite64(int, const void *, size_t, off64_t) __attribute__((alias("pwrite")));
ssize_t pwritev64(int, const struct iovec *, int, off64_t) __attribute__((alias("pwritev")));
int ftruncate64(int, off64_t) __attribute__((alias("ftruncate")));

static int sync_file(int fd, long call) {
	int before = errno;
	struct statx file;
	struct header was = {0}, h;
	int log = open_log(fd, &file);
	if (log >= 0) {
		was = read_header(log);
		lock(log, LOCK_UN);
	}
	delay();
	errno = before;
	int result = syscall(call, fd);
	if (log < 0 || result != 0)
		return logged(log, result);
	lock(log, LOCK_EX);
	h = read_header(log);
	if (was.end > h.synced) { /* else another sync was faster */
		fallocate(log, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, h.synced, was.end - h.synced); /* where possible */
		h.synced = was.end;
		write_at(log, &h, sizeof h, 0);
	}
	errno = before;
	return logged(log, result);
}

int fsync(int fd) {
	return sync_file(fd, SYS_fsync);
}

int fdatasync(int fd) {
	return sync_file(fd, SYS_fdatasync);
}
