package main

import (
	"io"
	"sync/atomic"
)

// output is standard output with errors that are kept: Write always succeeds, and the first error is returned by failure.
type output struct {
	to    io.Writer
	first atomic.Pointer[error]
}

// Write writes p, and keeps the error.
func (o *output) Write(p []byte) (int, error) {
	if _, err := o.to.Write(p); err != nil {
		o.first.CompareAndSwap(nil, &err)
	}
	return len(p), nil
}

// failure returns the first error of a Write. It does not wait for a Write under way.
func (o *output) failure() error {
	if err := o.first.Load(); err != nil {
		return *err
	}
	return nil
}
