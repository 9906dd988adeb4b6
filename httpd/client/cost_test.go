package client_test

import (
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// again makes the same Call whenever it is woken.
type again struct {
	origin *client.Origin
	call   client.Call
	waker  act.Waker
	asked  bool
	done   int
}

func (a *again) Act(t *act.Task) act.Directive {
	if a.waker = t.Waker(); !a.asked {
		return act.Wait
	}
	if a.call.Origin == nil {
		a.call.Origin = a.origin
		a.call.Add("Accept", "*/*")
	}
	if d := a.call.Act(t); d != act.Done {
		return d
	}
	answer := a.call.Response()
	content, _ := answer.Peek() // it comes with the head
	answer.Discard(len(content))
	_ = answer.Close()
	a.call.Reset()
	a.done++
	a.asked = false
	return act.Wait
}

// A Call that is used again, on a connection that is used again, costs no allocation.
func TestASmallCallAllocatesNothing(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c, err := ln.Accept()
		for in, out := make([]byte, 4096), []byte(raw(hello)); err == nil; {
			if _, err = c.Read(in); err == nil { // a request comes in one piece
				_, err = c.Write(out)
			}
		}
		_ = c.Close()
	}()
	l := servertest.New(t, act.Config{})
	a := &again{origin: &client.Origin{Address: ln.Addr().String(), MaxIdle: 1}}
	l.S.Spawn(a)
	l.Until("the first turn", func() bool { return a.waker != act.Waker{} })
	n := 0
	once := func() {
		n++
		a.asked = true
		a.waker.Wake()
		for a.done < n {
			_, err := l.S.Step(64)
			require.NoError(t, err)
			runtime.Gosched()
		}
	}
	once()
	require.Zero(t, testing.AllocsPerRun(100, once))
	a.origin.Close()
	l.Until("the end", func() bool { return a.origin.Conns() == 0 })
	_ = ln.Close()
	<-ended
}
