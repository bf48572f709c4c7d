/* Writes in every way that the library of ../disk sees, and syncs a part of it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what) {
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static int file(const char *name, int flags) {
	int fd = open(name, flags | O_CREAT, 0600);
	must(fd >= 0, name);
	return fd;
}

/* Delays syncs by so many µs. */
static void delay(const char *us) {
	int fd = open(getenv("LAB_SYNC_DELAY"), O_WRONLY | O_TRUNC);
	must(fd >= 0 && write(fd, us, strlen(us)) > 0 && close(fd) == 0, "delay");
}

static void *sync_file(void *fd) {
	must(fdatasync(*(int *)fd) == 0, "fdatasync");
	return NULL;
}

/* What is written while a sync is under way may be on disk, but nobody promised it. */
static void write_during_sync(int fd) {
	pthread_t syncing;
	delay("3600000000");
	must(pthread_create(&syncing, NULL, sync_file, &fd) == 0, "thread");
	while (access(getenv("LAB_SYNC_HELD"), F_OK) != 0)
		usleep(1000);
	must(write(fd, " late", 5) == 5, "late");
	delay("0");
	must(pthread_join(syncing, NULL) == 0, "join");
}

int main(void) {
	char zeros[60000] = {0};
	struct iovec two[] = {{"xx", 2}, {"yy", 2}};

	int old = file("old", O_RDWR);
	must(pwrite(old, "S", 1, 5) == 1 && fsync(old) == 0, "synced");
	must(pwrite(old, "ab", 2, 4) == 2, "pwrite");
	must(lseek(old, 2, SEEK_SET) == 2 && write(old, "cdef", 4) == 4, "write");
	must(writev(old, two, 2) == 4 && pwritev(old, two, 2, 20) == 4, "writev");
	must(ftruncate(old, 3) == 0 && ftruncate(old, 50) == 0, "ftruncate");
	must(pwrite(old, "z", 1, 40) == 1, "write behind the end");

	int big = file("big", O_WRONLY);
	must(pwrite(big, zeros, sizeof zeros, 12345) == sizeof zeros, "much");

	must(write(file("new", O_WRONLY), "new", 3) == 3, "new");

	int appended = file("appended", O_WRONLY | O_APPEND);
	must(write(appended, "synced", 6) == 6 && fdatasync(appended) == 0, "append");
	must(write(appended, " and more", 9) == 9 && lseek(appended, 0, SEEK_SET) == 0 && write(appended, "!", 1) == 1, "append");

	must(write(file("dsync", O_WRONLY | O_DSYNC), "on disk", 7) == 7, "O_DSYNC");

	int renamed = file("before", O_WRONLY);
	must(write(renamed, "synced", 6) == 6 && fsync(renamed) == 0 && write(renamed, "not", 3) == 3, "rename");
	must(rename("before", "renamed") == 0, "rename");

	/* A file that another process syncs. */
	int status, shared = file("shared", O_WRONLY);
	must(write(shared, "by two", 6) == 6, "shared");
	if (fork() == 0)
		_exit(fsync(shared));
	must(wait(&status) > 0 && status == 0, "sync by another process");
	must(write(shared, "more", 4) == 4, "shared");

	int during = file("during", O_WRONLY);
	must(write(during, "in time", 7) == 7, "during");
	write_during_sync(during);

	/* What has no name any more, and pipes, are not logged. */
	int gone = file("gone", O_WRONLY), ends[2];
	must(unlink("gone") == 0 && write(gone, "x", 1) == 1 && fsync(gone) == 0, "unlinked");
	must(pipe(ends) == 0 && write(ends[1], "x", 1) == 1, "pipe");
	must(write(-1, "x", 1) < 0 && pwrite(old, "x", 1, -2) < 0 && ftruncate(old, -1) < 0 && fsync(ends[0]) < 0, "errors");
	return 0;
}
