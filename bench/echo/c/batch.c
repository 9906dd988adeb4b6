// batch -addr 127.0.0.1:PORT -reactors N: the echo server of epoll.c, in which the receives of a round are one system call, and
// its sends another: epoll reports what is ready, and io_uring_enter(2) takes all receives, then all sends, none of which
// waits for its socket. A round of one event, and all that is not the usual case, goes as in epoll.c.
#include "ready.h"
#include "ring.h"

enum { SIZE = 32 << 10 }; // bytes that a connection receives in a batch

struct batch {
	struct ring ring;
	struct conn *conns[BATCH];
	int lens[BATCH]; // of what was received
	char bytes[BATCH][SIZE];
};

static void move(struct batch *b, int operation, int i, int len)
{
	struct io_uring_sqe *e = submit(&b->ring, operation, b->conns[i]->fd, i);
	e->addr = (uintptr_t)b->bytes[i];
	e->len = len;
	e->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
}

// complete submits n operations and waits for them. None waits for its socket, so a signal delays it, and nothing else.
static void complete(struct batch *b, unsigned n)
{
	do
		enter(&b->ring, n);
	while (atomic_load_explicit(b->ring.cq_tail, memory_order_acquire) - *b->ring.cq_head < n);
}

static int receive(struct batch *b, unsigned n)
{
	struct io_uring_cqe c;
	int sends = 0;
	complete(b, n);
	while (completed(&b->ring, &c)) {
		int i = c.user_data;
		if (c.res > 0) {
			b->lens[i] = c.res;
			sends++;
		} else if (c.res != -EAGAIN) {
			drop(b->conns[i]);
		}
	}
	return sends;
}

static void finish(struct reactor *r, struct batch *b, unsigned n)
{
	struct io_uring_cqe c;
	complete(b, n);
	while (completed(&b->ring, &c)) {
		int i = c.user_data, sent = c.res > 0 ? c.res : 0;
		struct conn *conn = b->conns[i];
		if (c.res < 0 && c.res != -EAGAIN) {
			drop(conn);
			continue;
		}
		if (sent < b->lens[i])
			enqueue(conn, b->bytes[i] + sent, b->lens[i] - sent);
		if (sent < b->lens[i] || b->lens[i] == SIZE)
			echo(r, conn, 0); // there may be more to receive, or room already
	}
}

static void batch(struct reactor *r, struct batch *b, struct epoll_event *events, int n)
{
	int receives = 0;
	for (int i = 0; i < n; i++) {
		struct conn *c = events[i].data.ptr;
		if (!c || c->len || events[i].events & ~(EPOLLIN | EPOLLOUT) || !(events[i].events & EPOLLIN)) {
			handle(r, &events[i]);
			continue;
		}
		b->conns[receives] = c;
		b->lens[receives] = 0;
		move(b, IORING_OP_RECV, receives++, SIZE);
	}
	if (!receives)
		return;
	int sends = receive(b, receives);
	for (int i = 0; i < receives; i++)
		if (b->lens[i])
			move(b, IORING_OP_SEND, i, b->lens[i]);
	if (sends)
		finish(r, b, sends);
}

_Noreturn static void run(int listener)
{
	struct epoll_event events[BATCH];
	struct reactor *r = watch_all(listener);
	struct batch *b = calloc(1, sizeof *b);
	if (!b)
		die("calloc");
	open_ring(&b->ring);
	for (;;) {
		int n = wait_for(r, events);
		if (n > 1)
			batch(r, b, events, n);
		else if (n == 1)
			handle(r, events);
	}
}
