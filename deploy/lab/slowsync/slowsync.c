/*
 * Delays fsync and fdatasync of the program that it is preloaded into (LD_PRELOAD)
 * by as many microseconds as the file says that LAB_SYNC_DELAY names. The file is
 * read again while a sync waits, so a new value counts for it too. The file that
 * LAB_SYNC_HELD names gets a byte for each sync that has to wait.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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
	if (fd < 0 || write(fd, "x", 1) != 1)
		abort();
	close(fd);
}

static void delay(void) {
	int before = errno, counted = 0;
	for (long long began = now(), left; (left = began + wanted() - now()) > 0;) {
		if (!counted++)
			count();
		usleep(left < 1000 ? left : 1000);
	}
	errno = before;
}

int fsync(int fd) {
	delay();
	return syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
	delay();
	return syscall(SYS_fdatasync, fd);
}
