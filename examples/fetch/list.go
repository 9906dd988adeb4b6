package main

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// list is an action that fetches one list.
type list struct {
	connect listener.Connect
	conn    *listener.Conn // nil: not connected yet
	text    []byte
	whole   bool
}

func newList(address string) *list { return &list{connect: listener.Connect{Address: address}} }

func (l *list) Act(t *act.Task) act.Directive {
	if l.conn == nil {
		if d := l.connect.Act(t); d != act.Done {
			return d
		}
		l.conn = l.connect.Conn()
	}
	for {
		in, err := l.conn.Peek(1)
		if err == io.EOF {
			l.whole = true
			return act.Done
		}
		if err != nil {
			return listener.Next(t, err)
		}
		if len(l.text)+len(in) > most {
			return t.Fail(errTooMuch)
		}
		l.text = append(l.text, in...)
		l.conn.Discard(len(in))
	}
}

// Close is called by the parent in the end. If the list is not whole it does not wait for the peer to close.
func (l *list) Close() error {
	switch {
	case l.conn == nil:
		return l.connect.Close()
	case l.whole:
		return l.conn.Close()
	}
	l.conn.Abort()
	return nil
}
