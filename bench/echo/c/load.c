// load PORT CONNS SIZE CPU: closed-loop clients for an echo server. Each connection sends its next
// message of SIZE bytes when its last one has come back whole, and compares every byte.
//
// It connects, echoes one message on each connection (so all are accepted), prints "ready", then takes
// numbers of messages on standard input, one a line, and answers each with the nanoseconds it took.
// The end of input ends it. It works by number, not by time, so that two servers do the same work.
// CPU -1 leaves it to the kernel where to run.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH = 256,
	PHASES = 251,	// messages begin at one of so many places of the pattern: a prime, so that a
			// neighbour's or an older message is not the one expected
	PATIENCE = 10000, // ms without any echo: the server has lost something
};

struct client {
	int fd;
	int sent, got; // of the present message; got <= sent <= size
	int phase;
};

static int size, conns, epoll;
static struct client *clients;
static char *pattern, *buffer;
static long unsent, unechoed; // messages not begun, messages not back

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void wrong(const char *what)
{
	fprintf(stderr, "load: %s\n", what);
	exit(1);
}

static void push(struct client *c)
{
	while (c->sent < size) {
		int n = send(c->fd, pattern + c->phase + c->sent, size - c->sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("load: send");
		c->sent += n;
	}
}

static void begin(struct client *c)
{
	unsent--;
	c->sent = c->got = 0;
	c->phase = (c->phase + 1) % PHASES;
	push(c);
}

// A byte too many has room in the buffer, so it is seen. A whole echo is the last thing that can come,
// so nothing is received behind it; a part is received behind until EAGAIN.
static void pull(struct client *c)
{
	if (c->got == size)
		return; // nothing under way: the event that every new registration brings
	while (c->got < size) {
		int n = recv(c->fd, buffer, size - c->got + 1, 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("load: recv");
		if (n == 0)
			wrong("the server closed a connection");
		if (c->got + n > c->sent)
			wrong("the server sent more than it was sent");
		if (memcmp(buffer, pattern + c->phase + c->got, n))
			wrong("the server sent other bytes than it was sent");
		c->got += n;
	}
	unechoed--;
	if (unsent > 0)
		begin(c);
}

static void run(long messages)
{
	struct epoll_event events[BATCH];
	unsent = unechoed = messages;
	for (int i = 0; i < conns && unsent > 0; i++)
		begin(&clients[i]);
	while (unechoed > 0) {
		int n = epoll_wait(epoll, events, BATCH, PATIENCE);
		if (n < 0 && errno != EINTR)
			die("load: epoll_wait");
		if (n == 0)
			wrong("no echo for ten seconds");
		for (int i = 0; i < n; i++) {
			push(events[i].data.ptr);
			pull(events[i].data.ptr);
		}
	}
}

static void dial(struct client *c, int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
	int one = 1;
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to))
		die("load: connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	c->sent = c->got = size; // nothing under way
	c->phase = (c - clients) * 7 % PHASES;
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) || epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e))
		die("load: watch");
}

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("load: sched_setaffinity");
}

static void prepare(int port)
{
	unsigned x = 1;
	pattern = malloc(size + PHASES);
	buffer = malloc(size + 1);
	clients = calloc(conns, sizeof *clients);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!pattern || !buffer || !clients || epoll < 0)
		die("load: prepare");
	for (int i = 0; i < size + PHASES; i++) {
		x = x * 1103515245 + 12345;
		pattern[i] = x >> 16;
	}
	for (int i = 0; i < conns; i++)
		dial(&clients[i], port);
	run(conns);
}

/* A load generator that is woken by an answer must not push the server off the CPU they share: whether
 * it does depends on which of the two has used a little less of the CPU so far, and costs the server a
 * tenth. Under SCHED_BATCH it waits until the server sleeps (sched(7)). */
static void yielding(void)
{
	struct sched_param none = {0};
	if (sched_setscheduler(0, SCHED_BATCH, &none) < 0)
		die("load: sched_setscheduler");
}

int main(int argc, char **argv)
{
	long messages;
	if (argc != 5 || (conns = atoi(argv[2])) < 1 || (size = atoi(argv[3])) < 1) {
		fprintf(stderr, "usage: load PORT CONNS SIZE CPU\n");
		return 2;
	}
	if (atoi(argv[4]) >= 0)
		pin(atoi(argv[4]));
	yielding();
	prepare(atoi(argv[1]));
	puts("ready");
	fflush(stdout);
	while (scanf("%ld", &messages) == 1) {
		long start = now();
		run(messages);
		printf("%ld\n", now() - start);
		fflush(stdout);
	}
}
