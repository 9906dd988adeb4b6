// epoll -addr 127.0.0.1:PORT -reactors N: the echo server to beat. What a careful C programmer writes by hand for one
// purpose, doing per message what Daimon does per message and nothing else: one receive, one send, and
// its share of an epoll_wait. No timers, no limits, no logging, no orderly end.
//
// Each reactor is a thread with its own listening socket (SO_REUSEPORT), its own epoll set and its own
// connections; they share nothing. Registration is once and edge-triggered, for the same events as
// Daimon's. What the socket refuses is queued, and nothing is received while something is queued: a
// peer that does not read costs at most one receive buffer.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 256, BUFFER = 64 << 10, BACKLOG = 4096 };

struct conn {
	int fd;
	int len;    // bytes of queue not sent yet, at its end at `from`; 0: no queue
	int from;
	char *queue; // allocated on the first short write
};

struct reactor {
	int cpu; // -1: not pinned
	int listener, epoll;
	char buffer[BUFFER];
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int listen_on(int port)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); // what it accepts inherits it
	if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, BACKLOG))
		die("epoll: listen");
	return fd;
}

static void watch(struct reactor *r, int fd, uint32_t events, void *tag)
{
	struct epoll_event e = {.events = events | EPOLLET, .data.ptr = tag};
	if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &e))
		die("epoll: epoll_ctl");
}

// Out of descriptors ends the program: no measurement is worth anything there.
static void accept_all(struct reactor *r)
{
	for (;;) {
		int fd = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EAGAIN)
				return;
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			die("epoll: accept");
		}
		struct conn *c = calloc(1, sizeof *c);
		if (!c)
			die("epoll: calloc");
		c->fd = fd;
		watch(r, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI, c);
	}
}

// Safe in the middle of a batch: a descriptor has at most one event in it, the one being handled.
static void drop(struct conn *c)
{
	close(c->fd);
	free(c->queue);
	free(c);
}

static void enqueue(struct conn *c, const char *p, int n)
{
	if (!c->queue && !(c->queue = malloc(BUFFER)))
		die("epoll: malloc");
	memcpy(c->queue, p, n);
	c->from = 0;
	c->len = n;
}

// flush sends the queue; -1: the socket takes no more now, or is broken (errno tells).
static int flush(struct conn *c)
{
	while (c->len > 0) {
		int n = send(c->fd, c->queue + c->from, c->len, MSG_NOSIGNAL);
		if (n < 0)
			return -1;
		c->from += n;
		c->len -= n;
	}
	return 0;
}

// A short receive means empty, so no second call is spent on hearing EAGAIN, unless the event says
// that there is more to the stream than data (its end, an error, out-of-band data).
static void echo(struct reactor *r, struct conn *c, uint32_t events)
{
	int to_the_end = events & ~(EPOLLIN | EPOLLOUT);
	for (;;) {
		if (c->len && flush(c))
			break;
		int n = recv(c->fd, r->buffer, BUFFER, 0);
		if (n < 0)
			break;
		if (n == 0) {
			drop(c);
			return;
		}
		int m = send(c->fd, r->buffer, n, MSG_NOSIGNAL);
		if (m < 0 && errno != EAGAIN)
			break;
		if (m < 0)
			m = 0;
		if (m < n)
			enqueue(c, r->buffer + m, n - m);
		else if (n < BUFFER && !to_the_end)
			return;
	}
	if (errno != EAGAIN)
		drop(c);
}

_Noreturn static void run(struct reactor *r)
{
	struct epoll_event events[BATCH];
	cpu_set_t set;
	if (r->cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(r->cpu, &set);
		pthread_setaffinity_np(pthread_self(), sizeof set, &set); // refused: slower, not wrong
	}
	for (;;) {
		int n = epoll_wait(r->epoll, events, BATCH, -1);
		if (n < 0 && errno != EINTR)
			die("epoll: epoll_wait");
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				echo(r, events[i].data.ptr, events[i].events);
			else
				accept_all(r);
		}
	}
}

static void *start(void *r)
{
	run(r);
}

// nth_cpu is the n-th CPU this process may use, as Daimon counts them; -1: there are not so many.
static int nth_cpu(int n)
{
	cpu_set_t allowed;
	if (sched_getaffinity(0, sizeof allowed, &allowed))
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && n-- == 0)
			return cpu;
	return -1;
}

int main(int argc, char **argv)
{
	int port = 0, reactors = 0;
	if (argc != 5 || sscanf(argv[2], "127.0.0.1:%d", &port) != 1 || (reactors = atoi(argv[4])) < 1) {
		fprintf(stderr, "usage: epoll -addr 127.0.0.1:PORT -reactors N\n");
		return 2;
	}
	struct reactor *all = calloc(reactors, sizeof *all);
	if (!all)
		die("epoll: calloc");
	int pinned = nth_cpu(reactors - 1) >= 0; // fewer CPUs than reactors: none is pinned
	for (int i = 0; i < reactors; i++) {
		all[i].cpu = pinned ? nth_cpu(i) : -1;
		all[i].listener = listen_on(port);
		if ((all[i].epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
			die("epoll: epoll_create1");
		watch(&all[i], all[i].listener, EPOLLIN, NULL);
	}
	/* Also a single reactor has a thread of its own, as in any server that can have more than one: Linux
	 * spares a process of one thread the counting of references to its files (fdget), which is 1 or 2 %
	 * of a message. */
	pthread_t thread;
	for (int i = 0; i < reactors; i++)
		if (pthread_create(&thread, NULL, start, &all[i]))
			die("epoll: pthread_create");
	pthread_join(thread, NULL);
}
