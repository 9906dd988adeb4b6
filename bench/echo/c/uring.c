// uring -addr 127.0.0.1:PORT -reactors N: the echo server of epoll.c over io_uring(7): one io_uring_enter a round, which submits
// the sends of the round and takes completions. Accepts and receives are multishot. Bytes are received into a ring of
// provided buffers, and sent from there.
//
// A connection has one send under way, so that its bytes stay in order even if a send is short. What is received meanwhile is
// queued in its buffers. A connection with MOST buffers in its queue receives nothing more before the queue is empty. The
// kernel fills up to 32 more until then, so a dozen peers that send and do not read stop all others: not so in epoll.c.
#include "server.h"
#include "ring.h"

// Smaller buffers cost more with messages of 16 KiB. More of them cost more with any, because the kernel takes them in turn.
enum { BUFFERS = 512, SIZE = 32 << 10, MOST = 4 };
enum { NONE = -1 }; // a buffer, or a connection

enum { ACCEPT, RECEIVE, SEND, CANCEL, KIND = 3 }; // user_data: one of these, and the address of a connection, which malloc aligns

struct conn {
	int fd;
	int receiving, ended;   // ended: it sends what it has and closes
	int first, last, count; // the queue of buffers; the first is being sent
	struct conn *next;      // starved
};

struct buffer {
	int len, from; // bytes, and those that are sent
	int next;      // in the queue
};

struct reactor {
	struct ring ring;
	int listener;
	struct conn *starved; // found no buffer to receive into
	int free;             // buffers of the kernel
	struct io_uring_buf_ring *provided;
	uint16_t tail; // of provided
	struct buffer buffers[BUFFERS];
	char (*bytes)[SIZE];
};

static void provide(struct reactor *r, int id)
{
	struct io_uring_buf *b = &r->provided->bufs[r->tail++ % BUFFERS];
	b->addr = (uintptr_t)r->bytes[id];
	b->len = SIZE;
	b->bid = id;
	r->free++;
	atomic_store_explicit((_Atomic uint16_t *)&r->provided->tail, r->tail, memory_order_release);
}

static void accept_next(struct reactor *r)
{
	struct io_uring_sqe *e = submit(&r->ring, IORING_OP_ACCEPT, r->listener, ACCEPT);
	e->ioprio = IORING_ACCEPT_MULTISHOT;
	e->accept_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
}

static void receive(struct reactor *r, struct conn *c)
{
	struct io_uring_sqe *e = submit(&r->ring, IORING_OP_RECV, c->fd, (uintptr_t)c | RECEIVE);
	e->ioprio = IORING_RECV_MULTISHOT;
	e->flags = IOSQE_BUFFER_SELECT;
	c->receiving = 1;
}

// The operation may have ended before it is to be cancelled; then there is nothing with its user_data, because c is not freed
// before all that is submitted for it here.
static void pause_receiving(struct reactor *r, struct conn *c)
{
	submit(&r->ring, IORING_OP_ASYNC_CANCEL, NONE, CANCEL)->addr = (uintptr_t)c | RECEIVE;
}

static void send_first(struct reactor *r, struct conn *c)
{
	struct buffer *b = &r->buffers[c->first];
	struct io_uring_sqe *e = submit(&r->ring, IORING_OP_SEND, c->fd, (uintptr_t)c | SEND);
	e->addr = (uintptr_t)(r->bytes[c->first] + b->from);
	e->len = b->len - b->from;
	e->msg_flags = MSG_NOSIGNAL;
}

static void enqueue(struct reactor *r, struct conn *c, int id, int len)
{
	r->free--;
	r->buffers[id] = (struct buffer){.len = len, .next = NONE};
	if (c->count++)
		r->buffers[c->last].next = id;
	else
		c->first = id;
	c->last = id;
	if (c->count == 1)
		send_first(r, c);
	else if (c->count == MOST)
		pause_receiving(r, c);
}

static void dequeue(struct reactor *r, struct conn *c)
{
	int id = c->first;
	c->first = r->buffers[id].next;
	c->count--;
	provide(r, id);
}

// settle closes a connection that has ended, or receives again, once nothing is under way that has its address.
static void settle(struct reactor *r, struct conn *c)
{
	if (c->receiving || c->count)
		return;
	if (!c->ended) {
		receive(r, c);
		return;
	}
	close(c->fd);
	free(c);
}

// Out of descriptors ends the program: no measurement is worth anything there.
static void accepted(struct reactor *r, struct io_uring_cqe *e)
{
	if (!(e->flags & IORING_CQE_F_MORE))
		accept_next(r);
	if (e->res < 0 && e->res != -ECONNABORTED) {
		errno = -e->res;
		die("accept");
	}
	if (e->res < 0)
		return;
	struct conn *c = calloc(1, sizeof *c);
	if (!c)
		die("calloc");
	c->fd = e->res;
	receive(r, c);
}

// The receive goes on unless the kernel says otherwise. A connection that finds no buffer waits for one: for its own, if it has
// any (settle), or for any (run).
static void received(struct reactor *r, struct conn *c, struct io_uring_cqe *e)
{
	if (e->res > 0)
		enqueue(r, c, e->flags >> IORING_CQE_BUFFER_SHIFT, e->res);
	if (e->flags & IORING_CQE_F_MORE)
		return;
	if (e->res == -ENOBUFS && !c->count) {
		c->next = r->starved;
		r->starved = c;
		return;
	}
	c->receiving = 0;
	c->ended = e->res <= 0 && e->res != -ECANCELED && e->res != -ENOBUFS;
	settle(r, c);
}

// A broken connection sends nothing more, and shutdown(2) ends its receive.
static void sent(struct reactor *r, struct conn *c, int n)
{
	struct buffer *b = &r->buffers[c->first];
	if (n > 0 && (b->from += n) < b->len) {
		send_first(r, c);
		return;
	}
	dequeue(r, c);
	if (n <= 0) {
		shutdown(c->fd, SHUT_RDWR);
		while (c->count)
			dequeue(r, c);
	}
	if (c->count)
		send_first(r, c);
	settle(r, c);
}

static void complete(struct reactor *r, struct io_uring_cqe *e)
{
	struct conn *c = (void *)(uintptr_t)(e->user_data & ~(uint64_t)KIND);
	switch (e->user_data & KIND) {
	case ACCEPT:
		accepted(r, e);
		break;
	case RECEIVE:
		received(r, c, e);
		break;
	case SEND:
		sent(r, c, e->res);
	}
}

static struct reactor *prepare(int listener)
{
	struct reactor *r = calloc(1, sizeof *r);
	if (!r)
		die("calloc");
	r->listener = listener;
	open_ring(&r->ring);
	r->provided = map(BUFFERS * sizeof(struct io_uring_buf), MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	r->bytes = map(BUFFERS * SIZE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	struct io_uring_buf_reg group = {.ring_addr = (uintptr_t)r->provided, .ring_entries = BUFFERS};
	if (syscall(SYS_io_uring_register, r->ring.fd, IORING_REGISTER_PBUF_RING, &group, 1))
		die("io_uring_register");
	for (int i = 0; i < BUFFERS; i++)
		provide(r, i);
	return r;
}

_Noreturn static void run(int listener)
{
	struct io_uring_cqe e;
	struct reactor *r = prepare(listener);
	accept_next(r);
	for (;;) {
		enter(&r->ring, 1);
		while (completed(&r->ring, &e))
			complete(r, &e);
		for (int n = r->free; n > 0 && r->starved; n--) {
			struct conn *c = r->starved;
			r->starved = c->next;
			receive(r, c);
		}
	}
}
