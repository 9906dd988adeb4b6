// Package panics keeps the value of a recovered panic, with its stack. Package act exports its type as act.Panic.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"
)

// Panic is the error that stands for a panic.
type Panic struct {
	Value any    // what panic was called with
	Stack []byte // of the goroutine that panicked, as debug.Stack returns it
}

// Error returns "panic: " and the value.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the value if it was an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Raise panics again with a value that was recovered elsewhere, for example on the stack of a coroutine. Recovered returns
// p then. If nothing recovers, the process ends with the stack of p printed.
func (p *Panic) Raise() { panic(raised{p}) }

type raised struct{ *Panic }

func (r raised) Error() string { return fmt.Sprintf("%v\n\n%s", r.Panic, r.Stack) }
func (r raised) Unwrap() error { return r.Panic }

// Fields returns more, err, and the stack of a Panic in err, for a log.
func Fields(err error, more ...zap.Field) []zap.Field {
	fields := append(more, zap.Error(err))
	if p, ok := errors.AsType[*Panic](err); ok {
		fields = append(fields, zap.ByteString("stack", p.Stack))
	}
	return fields
}

// Recovered returns the Panic for v, which recover has returned. The stack is that of the caller, which is a deferred
// function; a Panic that was raised again keeps its own.
func Recovered(v any) *Panic {
	switch v := v.(type) {
	case *Panic:
		return v
	case raised:
		return v.Panic
	}
	return &Panic{v, debug.Stack()}
}
