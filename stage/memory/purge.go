package memory

import (
	"context"
	"slices"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

func (s *tasks) Purge(ctx context.Context, status store.Status, age time.Duration, limit int) (int, error) {
	if err := s.acquire(ctx); err != nil {
		return 0, err
	}
	defer s.release()
	now := s.now()
	var ended []*entry
	for _, e := range s.tasks {
		if transition.Purged(&e.task, status, age, now) {
			ended = append(ended, e)
		}
	}
	slices.SortFunc(ended, func(e, f *entry) int { return transition.EndOrder(&e.task, &f.task) })
	ended = ended[:min(len(ended), max(0, limit))]
	for _, e := range ended {
		if k := (key{e.task.Kind, e.key}); s.keys[k] == e.task.ID {
			delete(s.keys, k)
		}
		e.count.n--
		e.count = nil
	}
	s.tasks = slices.DeleteFunc(s.tasks, func(e *entry) bool { return e.count == nil })
	return len(ended), nil
}
