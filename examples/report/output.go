package main

import (
	"io"
	"sync/atomic"
)

// output is standard output for whoever has something better to do than to look whether it can be written: all goes on,
// and the first error is told in the end.
type output struct {
	to    io.Writer
	first atomic.Pointer[error]
}

// Write never fails.
func (o *output) Write(p []byte) (int, error) {
	if _, err := o.to.Write(p); err != nil {
		o.first.CompareAndSwap(nil, &err)
	}
	return len(p), nil
}

// failure is why something of what was written has not come out. It does not wait for a Write that is under way.
func (o *output) failure() error {
	if err := o.first.Load(); err != nil {
		return *err
	}
	return nil
}
