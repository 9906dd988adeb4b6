package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// few is how many kinds a claim examines whether they have tasks or not. It is as many as engines usually have at most,
// since narrow does not know where a look begins (see looks).
const few = 100

// Claim is one message, and another one before it if there are more than a few kinds.
func (s *tasks) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	c.Kinds = transition.Kinds(c)
	if len(c.Kinds) > few {
		if err := s.narrow(ctx, &c); len(c.Kinds) == 0 || err != nil {
			return nil, s.failed(ctx, "claim", err)
		}
	}
	kinds, look := c.Kinds, s.look(c.Kinds)
	most, priorities := make([]int, len(kinds)), make([]int, len(kinds))
	for i, kind := range kinds {
		most[i], priorities[i] = max(0, c.Limit), c.Priorities[kind]
		if bound, ok := c.Most[kind]; ok {
			most[i] = max(0, min(bound, most[i]))
		}
	}
	n := len(c.Shows)
	kind, found, lost, at, attempts := make([]string, n), make([]string, n), make([]bool, n), make([]string, n), make([]int, n)
	for i, show := range c.Shows {
		kind[i], found[i], lost[i], at[i], attempts[i] = show.Kind, show.Found, show.Lost, show.Stage, show.Attempts
	}
	claimed, err := collectWith(ctx, s.pool, s.sql.share, look.scan, s.sql.claim,
		kinds, max(c.Limit, 0), kind, found, lost, at, attempts, microseconds(c.Length), c.Worker,
		c.Ticket.Engine, c.Ticket.Number, look.whole, look.since, most, priorities)
	s.looked(look, err == nil)
	return claimed, s.failed(ctx, "claim", err)
}

// others is how many tasks other claims may have locked until a narrowed claim gives fewer than it could.
const others = 100

// narrow leaves the kinds that a claim has to examine: kinds with tasks that may be lost, and kinds whose first tasks
// come first.
func (s *tasks) narrow(ctx context.Context, c *store.Claim) error {
	type head struct {
		store.Task // as far as transition.Order looks at it
		lost       bool
	}
	heads, err := collect(ctx, s.pool, func(r pgx.CollectableRow) (h head, err error) {
		h.Status = store.Normal
		return h, r.Scan(&h.Kind, &h.lost, &h.Token, &h.Due, &h.ID)
	}, s.sql.heads)
	if err != nil {
		return err
	}
	slices.SortFunc(heads, func(h, i head) int { return transition.Order(&h.Task, &i.Task, c.Priorities) })
	var kinds []string
	left := max(c.Limit, 0) + others
	for _, h := range heads {
		if _, asked := slices.BinarySearch(c.Kinds, h.Kind); !asked {
			continue
		}
		if bound, ok := c.Most[h.Kind]; ok && bound <= 0 {
			continue
		}
		if !h.lost {
			if left == 0 {
				continue
			}
			left--
		}
		kinds = append(kinds, h.Kind)
	}
	slices.Sort(kinds)
	c.Kinds = slices.Compact(kinds)
	var shows []store.Show
	for _, show := range c.Shows {
		if _, ok := slices.BinarySearch(c.Kinds, show.Kind); ok {
			shows = append(shows, show)
		}
	}
	c.Shows = shows
	return nil
}

// looks keep claims from looking at the same dead rows again and again. As long as any transaction of the server may
// see the old versions of rows that were claimed, their entries stay in the indexes, in front of the tasks that are
// due. So most claims begin with new tasks of the time of the last that was claimed, and do not look for lost ones.
// What they miss, such as tasks that became visible late, is found by the next look at everything. Such looks are rare:
// each is followed by a pause, of 20 times as long as it took, but not of more than mostPause, since it may have been
// the network that took so long. One that has failed is made again at once: lost tasks wait for it.
type looks struct {
	pause time.Duration // at least; 0 means that all look at everything

	looking sync.Mutex
	next    time.Time            // when the next look is one at everything
	since   map[string]time.Time // of each kind, when the latest new task that was claimed was enqueued
}

// mostPause is how long a lost task may have to wait, in addition to the end of its lease.
const mostPause = 5 * time.Second

// margin is how late a new task may become visible and still be found by each look.
const margin = time.Second

// look is where one claim looks.
type look struct {
	begun  time.Time
	whole  bool
	since  []*time.Time // of each kind; nil means from the beginning
	latest map[string]time.Time
}

func (s *looks) look(kinds []string) *look {
	s.looking.Lock()
	defer s.looking.Unlock()
	now := time.Now()
	l := &look{begun: now, whole: s.pause == 0 || !now.Before(s.next), since: make([]*time.Time, len(kinds)), latest: map[string]time.Time{}}
	if l.whole {
		s.next = now.Add(5 * s.pause) // unless this one ends before
		return l
	}
	for i, kind := range kinds {
		if since, ok := s.since[kind]; ok {
			since = since.Add(-margin)
			l.since[i] = &since
		}
	}
	return l
}

// scan reads a row of claim.
func (l *look) scan(r pgx.CollectableRow) (store.Task, error) {
	var fresh bool
	var since time.Time
	t, err := scanTask(r, &fresh, &since)
	if err == nil && fresh {
		l.latest[t.Kind] = since // they come in this order
	}
	return t, err
}

// looked notes what a look has found.
func (s *looks) looked(l *look, answered bool) {
	s.looking.Lock()
	defer s.looking.Unlock()
	if l.whole {
		now := time.Now()
		s.next = now
		if answered {
			s.next = now.Add(max(s.pause, min(mostPause, 20*now.Sub(l.begun))))
		}
	}
	for kind, since := range l.latest {
		if l.whole || since.After(s.since[kind]) { // the clock may have been set back
			s.since[kind] = since
		}
	}
}
