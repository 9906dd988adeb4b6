package main

import (
	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/load"
)

// Programs are the paths of what is run.
type Programs struct{ Subject, Coro, Reads, Epoll, Plain, Gnet, Nbio, Load string }

// compile compiles into the directory to. A subject that is given is not compiled.
func compile(to, subject string) (p Programs, err error) {
	b, err := build.Into(to)
	if err != nil {
		return p, err
	}
	if p.Epoll, err = b.C("echo/c/epoll.c"); err != nil {
		return p, err
	}
	if p.Plain, err = b.Go("echo/plain"); err != nil {
		return p, err
	}
	if p.Gnet, err = b.Go("echo/gnet"); err != nil {
		return p, err
	}
	if p.Nbio, err = b.Go("echo/nbio"); err != nil {
		return p, err
	}
	if p.Coro, err = b.Daimon("examples/echo-coro"); err != nil {
		return p, err
	}
	if p.Reads, err = b.Go("echo/reads"); err != nil {
		return p, err
	}
	if p.Load, err = load.Build(b); err != nil {
		return p, err
	}
	if p.Subject = subject; subject == "" {
		p.Subject, err = b.Daimon("examples/echo")
	}
	return p, err
}
