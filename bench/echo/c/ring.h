// A ring of io_uring(7), used by one thread. The thread that opens it is the one that enters it.
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { ENTRIES = 2048 }; // of submissions; four times as many of completions

struct ring {
	int fd;
	unsigned tail, submitted; // of what is to be submitted
	_Atomic unsigned *sq_head, *sq_tail, *cq_head, *cq_tail;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static void *map(size_t size, int flags, int fd, off_t at)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, at);
	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void open_ring(struct ring *r)
{
	struct io_uring_params p = {.cq_entries = 4 * ENTRIES, .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
								      IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE};
	if ((r->fd = syscall(SYS_io_uring_setup, ENTRIES, &p)) < 0)
		die("io_uring_setup");
	// both rings are in one mapping: IORING_FEAT_SINGLE_MMAP
	size_t sq = p.sq_off.array + ENTRIES * sizeof(unsigned), cq = p.cq_off.cqes + 4 * ENTRIES * sizeof *r->cqes;
	char *m = map(sq > cq ? sq : cq, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
	r->sqes = map(ENTRIES * sizeof *r->sqes, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	r->sq_head = (void *)(m + p.sq_off.head);
	r->sq_tail = (void *)(m + p.sq_off.tail);
	r->cq_head = (void *)(m + p.cq_off.head);
	r->cq_tail = (void *)(m + p.cq_off.tail);
	r->cqes = (void *)(m + p.cq_off.cqes);
	for (unsigned i = 0; i < ENTRIES; i++)
		((unsigned *)(m + p.sq_off.array))[i] = i;
}

// enter submits everything, and waits until there are so many completions. It also returns when a signal comes.
static void enter(struct ring *r, unsigned completions)
{
	int n;
	atomic_store_explicit(r->sq_tail, r->tail, memory_order_release);
	n = syscall(SYS_io_uring_enter, r->fd, r->tail - r->submitted, completions, IORING_ENTER_GETEVENTS, NULL, 0);
	if (n >= 0)
		r->submitted += n;
	else if (errno != EINTR && errno != EAGAIN && errno != EBUSY) // those leave it for the next time
		die("io_uring_enter");
}

// submit is a new operation. If the ring is full, it submits the older ones first.
static struct io_uring_sqe *submit(struct ring *r, int operation, int fd, uint64_t user_data)
{
	while (r->tail - atomic_load_explicit(r->sq_head, memory_order_acquire) == ENTRIES)
		enter(r, 0);
	struct io_uring_sqe *e = &r->sqes[r->tail++ % ENTRIES];
	*e = (struct io_uring_sqe){.opcode = operation, .fd = fd, .user_data = user_data};
	return e;
}

// completed takes the next completion, if there is one. Its place is free again at once, so what overflows the ring has room.
static int completed(struct ring *r, struct io_uring_cqe *c)
{
	unsigned head = atomic_load_explicit(r->cq_head, memory_order_relaxed);
	if (head == atomic_load_explicit(r->cq_tail, memory_order_acquire))
		return 0;
	*c = r->cqes[head % (4 * ENTRIES)];
	atomic_store_explicit(r->cq_head, head + 1, memory_order_release);
	return 1;
}
