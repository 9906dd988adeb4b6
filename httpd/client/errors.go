package client

import (
	"errors"
	"fmt"
	"os"
)

// ErrBusy is the cause of a Call that fails because Origin.MaxWaiting others wait for a connection.
var ErrBusy = errors.New("too many calls wait for a connection")

// ErrAnswered is returned by Call.Write when the server has answered and does not take more of the content.
var ErrAnswered = errors.New("client: the server has answered before the end of the content")

// Error is why a Call has failed, or why the rest of a Response does not come.
type Error struct {
	Address string // of the Origin
	// Sent reports whether the server may have acted on the request. If it is false, the request can be sent again, whatever its method.
	Sent bool
	// Err is the cause: ErrBusy, an os.ErrDeadlineExceeded, a *net.OpError of the dial, io.ErrUnexpectedEOF for an answer that is cut
	// short, what is wrong with the answer, or an error of the connection.
	Err error
}

// Error returns the address and the cause.
func (e *Error) Error() string { return fmt.Sprintf("client: %s: %v", e.Address, e.Err) }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether a time has passed: it implements net.Error.
func (e *Error) Timeout() bool { return errors.Is(e.Err, os.ErrDeadlineExceeded) }

// Temporary implements net.Error.
func (e *Error) Temporary() bool { return e.Timeout() }

// timeoutError says which time has passed.
type timeoutError string

func (e timeoutError) Error() string { return string(e) }
func (e timeoutError) Unwrap() error { return os.ErrDeadlineExceeded }
