package main

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/listener"
)

// coroutine is written as if each call could block. Each of two things that are done at the same time has a coroutine.
func coroutine(s *act.Scheduler, a, b string, report func([]string, error)) {
	s.Spawn(coro.New(func(co *coro.Co) error {
		var first, second []byte
		err := co.Within(patience, func() error {
			return co.Do(act.All(
				coro.New(func(co *coro.Co) (err error) { first, err = get(co, a); return err }),
				coro.New(func(co *coro.Co) (err error) { second, err = get(co, b); return err }),
			))
		})
		if err != nil {
			report(nil, err)
			return nil
		}
		report(merge(first, second), nil)
		return nil
	}))
}

func get(co *coro.Co, address string) ([]byte, error) {
	c, err := coro.Dial(co, address, listener.Limits{})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	text, err := io.ReadAll(io.LimitReader(c, most+1))
	if err == nil && len(text) > most {
		err = errTooMuch
	}
	if err != nil {
		c.Under().Abort() // rather than wait for the peer to close
	}
	return text, err
}
