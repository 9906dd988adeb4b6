// udp -addr 127.0.0.1:PORT -reactors 1: the echo server of datagrams to beat. It sends what it has received back, with one recvmmsg
// and one sendmmsg for up to 64 datagrams, and sleeps in epoll_wait. No limits, no counts, no orderly end.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { BATCH = 64, SLOT = 2048 };

static char bytes[BATCH][SLOT];
static struct sockaddr_in names[BATCH];
static struct iovec parts[BATCH];
static struct mmsghdr messages[BATCH];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void echo(int fd)
{
	for (;;) {
		for (int i = 0; i < BATCH; i++) {
			parts[i].iov_len = SLOT;
			messages[i].msg_hdr.msg_namelen = sizeof names[i];
		}
		int n = recvmmsg(fd, messages, BATCH, MSG_DONTWAIT, NULL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("udp: recvmmsg");
		for (int i = 0; i < n; i++)
			parts[i].iov_len = messages[i].msg_len;
		for (int sent = 0, k; sent < n; sent += k)
			if ((k = sendmmsg(fd, messages + sent, n - sent, 0)) < 0)
				die("udp: sendmmsg");
		if (n < BATCH)
			return; // what comes is an edge
	}
}

int main(int argc, char **argv)
{
	int port, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), epoll = epoll_create1(EPOLL_CLOEXEC);
	if (argc < 3 || sscanf(argv[2], "127.0.0.1:%d", &port) != 1)
		die("usage: udp -addr 127.0.0.1:PORT");
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
		die("udp: bind");
	for (int i = 0; i < BATCH; i++) {
		parts[i].iov_base = bytes[i];
		messages[i].msg_hdr = (struct msghdr){.msg_name = &names[i], .msg_iov = &parts[i], .msg_iovlen = 1};
	}
	for (;;)
		if (epoll_wait(epoll, &e, 1, -1) > 0)
			echo(fd);
}
