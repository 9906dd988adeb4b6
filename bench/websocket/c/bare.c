// bare -addr 127.0.0.1:PORT -reactors N: the bare sends of a broadcast, as a yardstick. Each thread has its own listening
// socket (SO_REUSEPORT), its own epoll set and its own connections. A message of any connection goes to each thread by a pipe,
// and each thread sends it to its connections, one send(2) for each: nothing is gathered, queued or timed, and a socket that
// refuses it ends the program.
//
// It speaks as much of WebSocket as the load generator: the answer to the handshake is that to the key of RFC 6455 1.3, and a
// message is one frame of at most 125 bytes.
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

enum { BATCH = 256, BACKLOG = 4096, MOST = 20000, BUFFER = 64 << 10, SHORT = 125 };

struct conn {
	int fd;
	int open; // the handshake is over
};

// frame is what goes through the pipes: at once, because it is shorter than PIPE_BUF.
struct frame {
	int size;
	char bytes[SHORT + 2];
};

struct reactor {
	int cpu; // -1: not pinned
	int listener, epoll, in, out;
	int count;
	struct conn *conns[MOST];
	unsigned char buffer[BUFFER];
};

static struct reactor *all;
static int reactors;

static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
			     "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

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
		die("bare: listen");
	return fd;
}

static void watch(struct reactor *r, int fd, uint32_t events, void *tag)
{
	struct epoll_event e = {.events = events, .data.ptr = tag};
	if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, fd, &e))
		die("bare: epoll_ctl");
}

static void send_all(int fd, const void *p, int n)
{
	if (send(fd, p, n, MSG_NOSIGNAL) != n && errno != EPIPE && errno != ECONNRESET)
		die("bare: send");
}

static void accept_all(struct reactor *r)
{
	int fd;
	while ((fd = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct conn *c = calloc(1, sizeof *c);
		if (!c || r->count == MOST)
			die("bare: accept");
		c->fd = fd;
		r->conns[r->count++] = c;
		watch(r, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET, c);
	}
	if (errno != EAGAIN)
		die("bare: accept");
}

static void drop(struct reactor *r, struct conn *c)
{
	for (int i = 0; i < r->count; i++)
		if (r->conns[i] == c)
			r->conns[i--] = r->conns[--r->count];
	close(c->fd);
	free(c);
}

// post passes the frames in p, which has n bytes, to all threads.
static void post(const unsigned char *p, int n)
{
	while (n > 0) {
		struct frame f;
		int length = p[1] & 0x7F;
		if (n < 6 + length || length > SHORT) {
			fprintf(stderr, "bare: half of a frame\n");
			exit(1);
		}
		f.size = 2 + length;
		f.bytes[0] = p[0];
		f.bytes[1] = length;
		for (int i = 0; i < length; i++)
			f.bytes[2 + i] = p[6 + i] ^ p[2 + i % 4];
		for (int i = 0; i < reactors; i++)
			if (write(all[i].out, &f, sizeof f) != sizeof f)
				die("bare: write");
		p += 6 + length;
		n -= 6 + length;
	}
}

static void receive(struct reactor *r, struct conn *c)
{
	int n = recv(c->fd, r->buffer, BUFFER, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		drop(r, c);
	} else if (c->open) {
		post(r->buffer, n);
	} else {
		c->open = 1;
		send_all(c->fd, answer, sizeof answer - 1);
	}
}

static void broadcast(struct reactor *r)
{
	struct frame f;
	if (read(r->in, &f, sizeof f) != sizeof f)
		die("bare: read");
	for (int i = 0; i < r->count; i++)
		if (r->conns[i]->open)
			send_all(r->conns[i]->fd, f.bytes, f.size);
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
			die("bare: epoll_wait");
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == r)
				broadcast(r);
			else if (events[i].data.ptr)
				receive(r, events[i].data.ptr);
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
	int port = 0, pipes[2];
	pthread_t thread;
	if (argc != 5 || sscanf(argv[2], "127.0.0.1:%d", &port) != 1 || (reactors = atoi(argv[4])) < 1) {
		fprintf(stderr, "usage: bare -addr 127.0.0.1:PORT -reactors N\n");
		return 2;
	}
	if (!(all = calloc(reactors, sizeof *all)))
		die("bare: calloc");
	int pinned = nth_cpu(reactors - 1) >= 0; // fewer CPUs than reactors: none is pinned
	for (int i = 0; i < reactors; i++) {
		struct reactor *r = &all[i];
		if (pipe(pipes) || (r->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
			die("bare: prepare");
		r->cpu = pinned ? nth_cpu(i) : -1;
		r->in = pipes[0];
		r->out = pipes[1];
		r->listener = listen_on(port);
		watch(r, r->listener, EPOLLIN, NULL);
		watch(r, r->in, EPOLLIN, r);
	}
	for (int i = 0; i < reactors; i++)
		if (pthread_create(&thread, NULL, start, &all[i]))
			die("bare: pthread_create");
	pthread_join(thread, NULL);
}
