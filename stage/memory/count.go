package memory

import (
	"context"
	"slices"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/transition"
)

// counted is what tasks are counted by.
type counted struct {
	kind, stage string
	status      stage.Status
}

// count is how many tasks there are of one kind, at one stage, in one status.
type count struct {
	counted
	n int
}

// count moves e to the count of its task.
func (s *store) count(e *entry) {
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

func (s *store) Counts(ctx context.Context) ([]stage.Count, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	var all []stage.Count
	for of, c := range s.counts {
		if c.n > 0 {
			all = append(all, stage.Count{Kind: of.kind, Stage: of.stage, Status: of.status, N: c.n})
		}
	}
	slices.SortFunc(all, transition.CountOrder)
	return all, nil
}
