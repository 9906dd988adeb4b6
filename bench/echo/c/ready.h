// What echo servers that wait for readiness have in common. Registration is once and edge-triggered, for the same events as
// Daimon's. What the socket refuses is queued, and nothing is received while something is queued: a peer that does not
// read costs at most one receive buffer.
#include "server.h"
#include <sys/epoll.h>

#ifndef ANSWER
#define ANSWER(buffer, n) (n) // an echo
#endif

enum { BATCH = 256, BUFFER = 64 << 10 };

struct conn {
	int fd;
	int len;    // bytes of queue not sent yet, at its end at `from`; 0: no queue
	int from;
	char *queue; // allocated on the first short write
};

struct reactor {
	int listener, epoll;
	char buffer[BUFFER];
};

static void watch(struct reactor *r, int fd, uint32_t events, void *tag)
{
	struct epoll_event e = {.events = events | EPOLLET, .data.ptr = tag};
	if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &e))
		die("epoll_ctl");
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
			die("accept");
		}
		struct conn *c = calloc(1, sizeof *c);
		if (!c)
			die("calloc");
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
		die("malloc");
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
		int size = ANSWER(r->buffer, n), m = send(c->fd, r->buffer, size, MSG_NOSIGNAL);
		if (m < 0 && errno != EAGAIN)
			break;
		if (m < 0)
			m = 0;
		if (m < size)
			enqueue(c, r->buffer + m, size - m);
		else if (n < BUFFER && !to_the_end)
			return;
	}
	if (errno != EAGAIN)
		drop(c);
}

static void handle(struct reactor *r, struct epoll_event *e)
{
	if (e->data.ptr)
		echo(r, e->data.ptr, e->events);
	else
		accept_all(r);
}

static struct reactor *watch_all(int listener)
{
	struct reactor *r = calloc(1, sizeof *r);
	if (!r)
		die("calloc");
	r->listener = listener;
	if ((r->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
		die("epoll_create1");
	watch(r, listener, EPOLLIN, NULL);
	return r;
}

static int wait_for(struct reactor *r, struct epoll_event events[BATCH])
{
	int n = epoll_wait(r->epoll, events, BATCH, -1);
	if (n < 0 && errno != EINTR)
		die("epoll_wait");
	return n;
}
