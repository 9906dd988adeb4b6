package httpd_test

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// A step is one thing that a handler does to its Response, whether it makes sense there or not.
type step struct {
	what string
	n    int
	want string // its error: a name, or "error"
}

func (s step) do(w *httpd.Response, f *os.File) error {
	var err error
	switch s.what {
	case "write":
		_, err = w.Write(bytes.Repeat([]byte("z"), s.n))
	case "flush":
		err = w.Flush()
	case "status":
		w.SetStatus(s.n)
	case "length":
		w.SetLength(int64(s.n))
	case "whole":
		w.SetBody(bytes.Repeat([]byte("w"), s.n))
	case "error":
		w.StatusOnly(s.n)
	case "close":
		w.CloseAfter()
	case "trailer":
		w.AddTrailer("X-T", "v")
	case "file":
		_, err = w.SendFile(f, 0, int64(s.n))
	case "field":
		w.Add("X-A", "v")
	case "date":
		w.Add("Date", "today") // a mistake
	case "inform":
		err = w.Inform(s.n)
	case "switch":
		err = w.SwitchProtocols("line-echo", lines(nil))
	case "switch-to-nothing":
		err = w.SwitchProtocols("line-echo", nobody)
	case "hijack":
		err = w.Hijack(lines(nil))
	case "hijack-to-nothing":
		err = w.Hijack(nobody)
	case "panic":
		panic("ours")
	default:
		panic("no step: " + s.what)
	}
	return err
}

func nobody(*listener.Conn) act.Action { return nil }

// steps are a handler of these steps, which does not care what they return unless it has to wait.
func steps(all []step, f *os.File, w *httpd.Response) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		for len(all) > 0 {
			s := all[0]
			all = all[1:]
			switch s.what {
			case "wait":
				t.Waker().Remote()()
				return act.Wait
			case "yield":
				return act.Yield
			}
			if blocked, is := s.do(w, f).(act.Blocked); is {
				return listener.Next(t, blocked)
			}
		}
		return act.Done
	})
}

var errOurs = errors.New("the disk is full")

// failing is an action that fails.
func failing(err error) act.Action {
	return act.Func(func(t *act.Task) act.Directive { return t.Fail(err) })
}

// does is a handler of steps, given as a text: "length 5, write 6 ErrLength". From "yield" on, and of "fill", "send" and "fail",
// they are steps of an action.
func does(t testing.TB, text string) httpd.Handler {
	var all []step
	for text := range strings.SplitSeq(text, ", ") {
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		s := step{what: words[0]}
		for _, word := range words[1:] {
			if n, err := strconv.Atoi(word); err == nil {
				s.n = n
			} else {
				s.want = word
			}
		}
		all = append(all, s)
	}
	return func(w *httpd.Response, _ *httpd.Request) act.Action {
		for i, s := range all {
			switch s.what {
			case "yield":
				return steps(all[i:], nil, w)
			case "fill":
				return filling(w, s.n)
			case "lend":
				return lending(w, nil, s.n)
			case "send":
				return sending(w, fileOf(t, 10), int64(s.n))
			case "fail":
				return failing(errOurs)
			}
			err := s.do(w, nil)
			want := map[string]error{"ErrLate": httpd.ErrLate, "ErrLength": httpd.ErrLength, "ErrNoContent": httpd.ErrNoContent}[s.want]
			switch {
			case want != nil:
				require.Equal(t, want, err, "%s %d", s.what, s.n)
			case s.want == "error":
				require.Error(t, err, "%s %d", s.what, s.n)
			}
		}
		return nil
	}
}
