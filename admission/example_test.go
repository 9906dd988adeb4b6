package admission_test

import (
	"bufio"
	"io"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// A server on which each source may have 100 connections, and make 20 in a second, or 50 at once.
func ExampleLimiter() {
	limits := &admission.Limiter{Conns: 100, Rate: 20, Burst: 50}
	_ = &service.Listener{
		Address: ":7007",
		Filters: []listener.Filter{limits.Filter},
		Handler: greets,
	}
}

// A server of lines, of which a source may send 50 in a second. It is read from no faster.
func ExampleLimiter_Pace() {
	limits := &admission.Limiter{Messages: 50}
	echo := func(c *coro.Conn) error {
		lines := bufio.NewReader(c)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return err
			}
			if _, err := io.WriteString(c, line); err != nil {
				return err
			}
			if err := c.Co().Sleep(limits.Pace(c.Under())); err != nil {
				return err
			}
		}
	}
	_ = &service.Listener{Address: ":7007", Filters: []listener.Filter{limits.Filter}, Handler: coro.Serve(echo)}
}
