// Package e2e has no code but tests. They build the programs of folder examples, start them, and use them as their
// users do, from outside: sockets, signals, flags, standard streams, and what the kernel says about the process.
//
//	DAIMON_TESTS=full go test -count=1 ./e2e
//
// Without DAIMON_TESTS=full all of it is left out. -count=1, since go test does not know that the programs, which
// another go command builds, belong to the tests: it would take a result from its cache although a program has changed.
//
// With DAIMON_ENGINE=uring (or epoll) the programs of folder examples have that flag -engine: make test runs these tests once more
// with it.
//
// One promise is shown once, at the lowest level that can show it: these tests are for what needs a process, such as
// its signals, its descriptors and its end, and for other programs that talk to ours. The echo server shows what every
// server has from the packages below. The others show that their programs do what they are for.
//
// Folder gateway compares examples/gateway with nginx and HAProxy. Folder browser, a module of its own, uses the web server with
// Chromium. The tests of examples/chat, examples/nethttp, examples/jobs and examples/rpc, which are modules as well, are in these
// modules. Folder libraries, another module, has no program: it puts libraries such as golang.org/x/crypto/ssh on connections, and
// handlers of net/http on httpd/nethttp.
package e2e
