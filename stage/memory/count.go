package memory

import (
	"context"
	"slices"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// counted is what tasks are counted by.
type counted struct {
	kind, stage string
	status      store.Status
}

// count is how many tasks there are of one kind, at one stage, in one status.
type count struct {
	counted
	n int
}

// count moves e to the count of its task.
func (s *tasks) count(e *entry) {
	of := counted{e.task.Kind, e.task.Stage, e.task.Status}
	if e.count != nil {
		if e.count.counted == of {
			return
		}
		e.count.n--
	}
	c := s.counts[of]
	if c == nil {
		c = &count{counted: of}
		s.counts[of] = c
	}
	c.n++
	e.count = c
}

func (s *tasks) Counts(ctx context.Context) ([]store.Count, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	var all []store.Count
	for of, c := range s.counts {
		if c.n > 0 {
			all = append(all, store.Count{Kind: of.kind, Stage: of.stage, Status: of.status, N: c.n})
		}
	}
	slices.SortFunc(all, transition.CountOrder)
	return all, nil
}
