package coro

import "io"

// Reader returns an io.Reader over r, whose Read returns an act.Blocked instead of waiting, such as the body of an httpd.Request or a
// client.Response. The Reader waits. It is for the coroutines of co's task.
func Reader(co *Co, r io.Reader) io.Reader { return &stream{co: co, r: r} }

// Writer returns an io.Writer over w, whose Write returns an act.Blocked when it has taken less than everything, such as an
// httpd.Response or a client.Call. The Writer waits. It is for the coroutines of co's task.
func Writer(co *Co, w io.Writer) io.Writer { return &stream{co: co, w: w} }

type stream struct {
	co *Co
	r  io.Reader
	w  io.Writer
}

func (s *stream) Read(p []byte) (int, error) {
	co := s.co.Caller()
	for {
		n, err := s.r.Read(p)
		if n > 0 || err == io.EOF || len(p) == 0 {
			return n, err
		}
		if err = co.Unblock(err); err != nil {
			return 0, err
		}
	}
}

func (s *stream) Write(p []byte) (written int, err error) {
	co := s.co.Caller()
	for {
		n, err := s.w.Write(p[written:])
		if written += n; written == len(p) {
			return written, nil
		}
		if err = co.Unblock(err); err != nil {
			return written, err
		}
	}
}
