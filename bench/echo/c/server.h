// What the echo servers in C have in common: -addr 127.0.0.1:PORT -reactors N. Each reactor is a thread with its own listening
// socket (SO_REUSEPORT), and shares nothing with the others.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

struct thread {
	int cpu; // -1: not pinned
	int listener;
};

// run is the program: it serves what connects to the listener.
_Noreturn static void run(int listener);

static void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
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
		die("listen");
	return fd;
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

static void *start(void *thread)
{
	struct thread *t = thread;
	cpu_set_t set;
	if (t->cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(t->cpu, &set);
		pthread_setaffinity_np(pthread_self(), sizeof set, &set); // refused: slower, not wrong
	}
	run(t->listener);
}

int main(int argc, char **argv)
{
	int port = 0, reactors = 0;
	if (argc != 5 || sscanf(argv[2], "127.0.0.1:%d", &port) != 1 || (reactors = atoi(argv[4])) < 1) {
		fprintf(stderr, "usage: %s -addr 127.0.0.1:PORT -reactors N\n", program_invocation_short_name);
		return 2;
	}
	struct thread *all = calloc(reactors, sizeof *all);
	if (!all)
		die("calloc");
	int pinned = nth_cpu(reactors - 1) >= 0; // fewer CPUs than reactors: none is pinned
	for (int i = 0; i < reactors; i++)
		all[i] = (struct thread){.cpu = pinned ? nth_cpu(i) : -1, .listener = listen_on(port)};
	/* Also a single reactor has a thread of its own, as in any server that can have more than one: Linux
	 * spares a process of one thread the counting of references to its files (fdget), which is 1 or 2 %
	 * of a message. */
	pthread_t thread;
	for (int i = 0; i < reactors; i++)
		if (pthread_create(&thread, NULL, start, &all[i]))
			die("pthread_create");
	pthread_join(thread, NULL);
}
