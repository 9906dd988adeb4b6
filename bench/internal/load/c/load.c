// load [-all] [-udp] [-rate N] PORT CONNS CPU: closed-loop clients that know what they will hear. Each connection sends its next
// message when the answer to its last one is there as a whole, and compares every byte. What a message
// holds is no matter here: bytes to be echoed, a request, sixteen requests.
//
// Standard input begins with a line, SAY HEAR PHASES PERIOD HOLE LENGTH APART OPENING, and three texts. The
// first holds the message, of SAY bytes, and the second the answer, of HEAR bytes. Each message of a
// connection begins one byte farther into its text than the last, and so does its answer; the PHASES-th next
// begins where this one does. If APART is 1, each begins behind the last. In every PERIOD bytes of an answer,
// LENGTH bytes from HOLE on are not compared. The third text, of OPENING bytes, is a request of HTTP, which a
// connection begins with: it has to be answered with 101 (Switching Protocols).
//
// It connects, has one exchange on each connection (so all are accepted), prints "ready", then takes
// numbers of exchanges on standard input, one a line, and answers each with the nanoseconds it took.
// The end of input ends it. It works by number, not by time, so that two servers do the same work.
// CPU -1 leaves it to the kernel where to run.
//
// With -all an exchange is a message of the first connection, and its answer to each of the connections. With -udp each message
// and each answer is a datagram, and a connection is a socket.
//
// With -rate N (and without -all) exchanges begin by the clock: N in a second, on one connection after the other. If the last
// answer of a connection has not come yet, the exchange begins when it has, but its latency counts from its time all the same.
// The median, the 99th and the 99.9th percentile of the latencies, in ns, follow the ns that all exchanges took.
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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH = 256,
	PATIENCE = 10000, // ms without any answer: the server has lost something
};

struct client {
	int fd;
	int sent; // of the present message; sent <= say
	int got;  // of its answer; got <= hear
	int phase;
	long turn; // with a rate: the number of the exchange under way, or of the next one
};

static int say, hear, phases, period, hole, hole_len, apart, opening; // see above
static char *message, *answer, *request;
static int conns, epoll, all, udp;
static struct client *clients;
static char *buffer; // for one byte more than an answer has
static long unsent, unanswered;
static long rate, begun, exchanges, due; // of the exchanges, due are to have begun
static long *took;                       // ns, by number of the exchange

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

// start is where a phase begins in a text.
static int start(int phase, int size)
{
	return apart ? phase * size : phase;
}

static void push(struct client *c)
{
	while (c->sent < say) {
		int n = send(c->fd, message + start(c->phase, say) + c->sent, say - c->sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("load: send");
		c->sent += n;
	}
}

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long when(long exchange)
{
	return begun + exchange * 1000000000L / rate;
}

static void begin(struct client *c)
{
	unsent--;
	c->sent = c->got = 0;
	c->phase = (c->phase + 1) % phases;
	push(c);
}

// expected reports whether n bytes are what the answer has from its byte `at` on, holes left out.
static int expected(const char *whole, int at, const char *got, int n)
{
	while (n > 0) {
		int in = at % period, after = hole + hole_len;
		int m = in < hole ? hole - in : in < after ? after - in : period - in;
		if (m > n)
			m = n;
		if ((in < hole || in >= after) && memcmp(whole + at, got, m))
			return 0;
		at += m;
		got += m;
		n -= m;
	}
	return 1;
}

// A byte too many has room in the buffer, so it is seen. A whole answer is the last thing that can come,
// so nothing is received behind it; a part is received behind until EAGAIN.
static void pull(struct client *c)
{
	if (c->got == hear)
		return; // nothing under way: the event that every new registration brings
	while (c->got < hear) {
		int n = recv(c->fd, buffer, hear - c->got + 1, 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("load: recv");
		if (n == 0)
			wrong("the server closed a connection");
		if (c->got + n > hear)
			wrong("the server sent more than was expected");
		if (!expected(answer + start(c->phase, hear), c->got, buffer, n))
			wrong("the server sent other bytes than were expected");
		c->got += n;
	}
	unanswered--;
	if (rate) {
		took[c->turn] = now() - when(c->turn);
		c->turn += conns;
	}
	if (rate ? c->turn < due : unsent > 0)
		begin(c);
}

// await begins exchanges that are due, and waits for events, but not longer than until the next exchange is due.
static int await(struct epoll_event events[BATCH])
{
	if (!rate)
		return epoll_wait(epoll, events, BATCH, PATIENCE);
	long rest = 0;
	for (; due < exchanges && (rest = when(due) - now()) <= 0; due++) {
		struct client *c = &clients[due % conns];
		if (c->turn == due)
			begin(c);
	}
	if (due == exchanges)
		return epoll_wait(epoll, events, BATCH, PATIENCE);
	struct timespec pause = {.tv_sec = rest / 1000000000L, .tv_nsec = rest % 1000000000L};
	int n = epoll_pwait2(epoll, events, BATCH, &pause, NULL);
	if (n == 0) { // it is time, not the server's silence
		errno = EINTR;
		return -1;
	}
	return n;
}

static void finish(void)
{
	struct epoll_event events[BATCH];
	while (unanswered > 0) {
		int n = await(events);
		if (n < 0 && errno != EINTR)
			die("load: epoll_wait");
		if (n == 0)
			wrong("no answer for ten seconds");
		for (int i = 0; i < n; i++) {
			push(events[i].data.ptr);
			pull(events[i].data.ptr);
		}
	}
}

// broadcast has the first connection say something, and all of them hear the answer.
static void broadcast(void)
{
	for (int i = 0; i < conns; i++) {
		clients[i].got = 0;
		clients[i].phase = (clients[i].phase + 1) % phases;
	}
	unanswered = conns;
	clients[0].sent = 0;
	push(&clients[0]);
	finish();
}

static void pace(void)
{
	if (!(took = realloc(took, exchanges * sizeof *took)))
		die("load: realloc");
	due = 0;
	for (int i = 0; i < conns; i++)
		clients[i].turn = i;
	begun = now();
	finish();
}

static void run(void)
{
	if (all) {
		for (long n = exchanges; n > 0; n--)
			broadcast();
		return;
	}
	unsent = unanswered = exchanges;
	if (rate) {
		pace();
		return;
	}
	for (int i = 0; i < conns && unsent > 0; i++)
		begin(&clients[i]);
	finish();
}

// switch_protocols sends the request, and takes the head of its answer.
static void switch_protocols(int fd)
{
	static const char want[] = "HTTP/1.1 101 ", end[] = "\r\n\r\n";
	char head[4096];
	struct timeval patience = {.tv_sec = PATIENCE / 1000};
	int got = 0;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
	    send(fd, request, opening, MSG_NOSIGNAL) != opening)
		die("load: send");
	while (!memmem(head, got, end, 4)) {
		int n = recv(fd, head + got, sizeof head - got, 0);
		if (n < 0 && errno == EINTR)
			continue; // the process was stopped: signal(7)
		if (n < 0)
			die("load: recv");
		if (n == 0)
			wrong("the server closed a connection");
		got += n;
	}
	if (memcmp(head, want, sizeof want - 1))
		wrong("the server does not switch protocols");
	if (memcmp(head + got - 4, end, 4))
		wrong("the server sent more than was expected");
}

static void dial(struct client *c, int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
	int one = 1;
	c->fd = socket(AF_INET, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to))
		die("load: connect");
	if (!udp)
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (opening)
		switch_protocols(c->fd);
	c->sent = say; // nothing under way
	c->got = hear;
	c->phase = all ? 0 : (c - clients) * 7 % phases;
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) || epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &e))
		die("load: watch");
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("load: sched_setaffinity");
}

// text is the next n bytes of standard input.
static char *text(int n)
{
	char *t = malloc(n);
	if (!t || (int)fread(t, 1, n, stdin) != n)
		wrong("half of what is to be said");
	return t;
}

static void learn(void)
{
	char line[128];
	if (!fgets(line, sizeof line, stdin) || sscanf(line, "%d %d %d %d %d %d %d %d", &say, &hear, &phases,
						       &period, &hole, &hole_len, &apart, &opening) != 8)
		wrong("not told what to say");
	message = text(start(phases - 1, say) + say);
	answer = text(start(phases - 1, hear) + hear);
	request = text(opening);
}

static void prepare(int port)
{
	buffer = malloc(hear + 1);
	clients = calloc(conns, sizeof *clients);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!buffer || !clients || epoll < 0)
		die("load: prepare");
	for (int i = 0; i < conns; i++)
		dial(&clients[i], port);
	exchanges = all ? 1 : conns;
	run();
}

static int by_size(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;
	return (x > y) - (x < y);
}

static void report(long wall)
{
	printf("%ld", wall);
	if (rate) {
		qsort(took, exchanges, sizeof *took, by_size);
		printf(" %ld %ld %ld", took[exchanges / 2], took[exchanges * 99 / 100], took[exchanges * 999 / 1000]);
	}
	puts("");
	fflush(stdout);
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
	long paced = 0;
	char **arg = argv + 1;
	if ((all = argc > 1 && !strcmp(*arg, "-all")))
		arg++;
	if ((udp = arg < argv + argc && !strcmp(*arg, "-udp")))
		arg++;
	if (argv + argc - arg > 1 && !strcmp(*arg, "-rate")) {
		paced = atol(arg[1]);
		arg += 2;
	}
	if (argv + argc - arg != 3 || (conns = atoi(arg[1])) < 1) {
		fprintf(stderr, "usage: load [-all] [-udp] [-rate N] PORT CONNS CPU\n");
		return 2;
	}
	if (atoi(arg[2]) >= 0)
		pin(atoi(arg[2]));
	if (!paced)
		yielding(); // otherwise the clock says when it runs
	learn();
	prepare(atoi(arg[0]));
	puts("ready");
	fflush(stdout);
	rate = paced; // the first exchanges had none
	if (rate)
		prctl(PR_SET_TIMERSLACK, 1); // the usual 50 us would count as latency
	while (scanf("%ld", &exchanges) == 1) {
		long from = now();
		run();
		report(now() - from);
	}
}
