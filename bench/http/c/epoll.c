// epoll -addr 127.0.0.1:PORT -reactors N: the loop of ../../echo/c/epoll.c with an answer for each request. It parses nothing:
// it counts the empty lines of what it receives, and takes it that requests arrive whole. Date is always the same.
static int answer(char *buffer, int n);
#define ANSWER answer
#include "../../echo/c/epoll.c"

static int answer(char *buffer, int n)
{
	static const char one[] = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
				  "Content-Length: 13\r\n\r\nHello, World!";
	int requests = 0, size = sizeof one - 1;
	for (char *p = buffer; (p = memmem(p, buffer + n - p, "\r\n\r\n", 4)); p += 4)
		requests++;
	if (requests * size > BUFFER)
		die("more requests at a time than there is room for answers");
	for (int i = 0; i < requests; i++)
		memcpy(buffer + i * size, one, size);
	return requests * size;
}
