package main

import "github.com/daimon-go/daimon/bench/internal/build"

// compile compiles the server of a column and returns the program. A subject that is given is not compiled.
func (o Options) compile(b build.Builder, column string) (program string, err error) {
	switch column {
	case "epoll", "control":
		return b.C("echo/c/epoll.c")
	case "uring", "batch":
		return b.C("echo/c/" + column + ".c")
	case "garbage", "reads", "plain", "gnet", "nbio", "netpoll":
		return b.Go("echo/" + column)
	case "fib":
		return b.Module("echo/testdata/fib", "go1.27.3")
	case "coro":
		return b.Daimon("examples/echo-coro")
	}
	if o.Server != "" {
		return o.Server, nil
	}
	return b.Daimon("examples/echo")
}
