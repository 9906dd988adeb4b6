package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/daimon-go/daimon/examples/rpc/logv1"
)

//go:generate protoc --go_out=. --go_opt=module=github.com/daimon-go/daimon/examples/rpc --connect-go_out=. --connect-go_opt=module=github.com/daimon-go/daimon/examples/rpc logv1/log.proto

// mostKept bounds the memory of the entries, in bytes. Older ones are dropped.
const mostKept = 64 << 20

func sizeOf(e *logv1.Entry) int { return proto.Size(e) + 256 }

// journal is the service log.v1.Log. Its methods are called on goroutines.
type journal struct {
	ending <-chan struct{}

	mu      sync.Mutex
	entries []*logv1.Entry // a sent message is never changed
	next    int64          // position
	size    int            // of them
	grown   chan struct{}  // closed with the next entry
}

func newJournal(ending <-chan struct{}) *journal {
	return &journal{ending: ending, next: 1, grown: make(chan struct{})}
}

func (j *journal) append(e *logv1.Entry, author string) (*logv1.Position, error) {
	if e.Text == "" {
		return nil, errEmpty
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Position, e.Author = j.next, author
	j.next++
	j.entries = append(j.entries, e)
	for j.size += sizeOf(e); j.size > mostKept; j.entries = j.entries[1:] {
		j.size -= sizeOf(j.entries[0])
	}
	close(j.grown)
	j.grown = make(chan struct{})
	return &logv1.Position{Position: e.Position}, nil
}

// since returns the entries from a position on, and what is closed when there are more.
func (j *journal) since(from int64) ([]*logv1.Entry, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	first := j.next - int64(len(j.entries))
	return j.entries[min(max(from-first, 0), int64(len(j.entries))):], j.grown
}

var errEmpty = connect.NewError(connect.CodeInvalidArgument, errors.New("an entry needs a text"))

// Append implements logv1connect.LogHandler.
func (j *journal) Append(_ context.Context, r *connect.Request[logv1.Entry]) (*connect.Response[logv1.Position], error) {
	at, err := j.append(r.Msg, r.Header().Get("Author"))
	return connect.NewResponse(at), err
}

// Load implements logv1connect.LogHandler. The trailer "entries" says how many there were.
func (j *journal) Load(_ context.Context, s *connect.ClientStream[logv1.Entry]) (*connect.Response[logv1.Position], error) {
	n, last := 0, &logv1.Position{}
	for ; s.Receive(); n++ {
		var err error
		if last, err = j.append(s.Msg(), s.RequestHeader().Get("Author")); err != nil {
			return nil, err
		}
	}
	answer := connect.NewResponse(last)
	answer.Trailer().Set("Entries", strconv.Itoa(n))
	return answer, s.Err()
}

// Read implements logv1connect.LogHandler.
func (j *journal) Read(ctx context.Context, r *connect.Request[logv1.ReadRequest], s *connect.ServerStream[logv1.Entry]) error {
	for from := r.Msg.From; ; {
		entries, grown := j.since(from)
		for _, e := range entries {
			if err := s.Send(e); err != nil {
				return err
			}
			from = e.Position + 1
		}
		if !r.Msg.Follow {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		case <-j.ending:
			return connect.NewError(connect.CodeUnavailable, errors.New("the server ends"))
		}
	}
}

// Pipe implements logv1connect.LogHandler.
func (j *journal) Pipe(_ context.Context, s *connect.BidiStream[logv1.Entry, logv1.Position]) error {
	for {
		e, err := s.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at, err := j.append(e, s.RequestHeader().Get("Author"))
		if err != nil {
			return err
		}
		if err := s.Send(at); err != nil {
			return err
		}
	}
}
