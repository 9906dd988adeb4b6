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
// since narrow does not know where a claim begins (see claims).
const few = 100

// Claim is one message, and another one before it if there are more than a few kinds.
func (s *tasks) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	c.Kinds = transition.Kinds(c)
	if len(c.Kinds) > few {
		if err := s.narrow(ctx, &c); len(c.Kinds) == 0 || err != nil {
			return nil, s.failed(ctx, "claim", err)
		}
	}
	kinds, begin := c.Kinds, s.begin(c.Kinds)
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
	claimed, err := collectWith(ctx, s.pool, s.sql.share, begin.scan, s.sql.claim,
		kinds, max(c.Limit, 0), kind, found, lost, at, attempts, microseconds(c.Length), c.Worker,
		c.Ticket.Engine, c.Ticket.Number, begin.full, begin.since, most, priorities)
	s.ended(begin, err == nil)
	return claimed, s.failed(ctx, "claim", err)
}

// others is how many tasks other claims may have locked until a narrowed claim gives fewer than it could.
const others = 100

// narrow leaves the kinds that a claim has to examine: kinds with tasks that may be lost, and kinds whose first tasks
// come first.
func (s *tasks) narrow(ctx context.Context, c *store.Claim) error {
	type head struct {
		store.Task // as far as transition.Order reads it
		lost       bool
	}
	heads, err := collect(ctx, s.pool, func(r pgx.CollectableRow) (h head, err error) {
		h.Status = store.Normal
		err = r.Scan(&h.Kind, &h.lost, &h.Token, &h.Due, &h.ID)
		return h, err
	}, s.sql.heads)
	if err != nil {
		return err
	}
	slices.SortFunc(heads, func(h, i head) int { return transition.Order(&h.Task, &i.Task, c.Priorities) })
	var kinds []string
	left := max(c.Limit, 0) + others
	for _, h := range heads {
		_, asked := slices.BinarySearch(c.Kinds, h.Kind)
		bound, bounded := c.Most[h.Kind]
		switch {
		case !asked || bounded && bound <= 0:
		case h.lost:
			kinds = append(kinds, h.Kind)
		case left > 0:
			left--
			kinds = append(kinds, h.Kind)
		}
	}
	slices.Sort(kinds)
	c.Kinds = slices.Compact(kinds)
	c.Shows = slices.DeleteFunc(slices.Clone(c.Shows), func(show store.Show) bool {
		_, examined := slices.BinarySearch(c.Kinds, show.Kind)
		return !examined
	})
	return nil
}

// claims keep from reading the same dead rows again and again. As long as any transaction of the server may see the old
// versions of rows that were claimed, their entries stay in the indexes, in front of the tasks that are due. So most claims
// begin with new tasks of the time of the last that was claimed, and leave out lost ones. What they miss, such as tasks that
// became visible late, the next full claim finds. Each full claim is followed by a pause, of 20 times as long as it took,
// but not of more than mostPause, since it may have been the network that took so long. One that has failed is made again
// at once: lost tasks wait for it.
type claims struct {
	pause time.Duration // at least; 0 means that all claims are full

	claiming sync.Mutex
	next     time.Time            // when the next claim is full
	since    map[string]time.Time // of each kind, when the latest new task that was claimed was enqueued
}

// mostPause is how long a lost task may have to wait, in addition to the end of its lease.
const mostPause = 5 * time.Second

// margin is how late a new task may become visible and still be found by each claim.
const margin = time.Second

// beginning is where a claim begins.
type beginning struct {
	at     time.Time
	full   bool
	since  []*time.Time // of each kind; nil means all
	latest map[string]time.Time
}

func (s *claims) begin(kinds []string) *beginning {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	now := time.Now()
	b := &beginning{at: now, full: s.pause == 0 || !now.Before(s.next), since: make([]*time.Time, len(kinds)), latest: map[string]time.Time{}}
	if b.full {
		s.next = now.Add(5 * s.pause) // unless this one ends before
		return b
	}
	for i, kind := range kinds {
		if since, ok := s.since[kind]; ok {
			since = since.Add(-margin)
			b.since[i] = &since
		}
	}
	return b
}

func (b *beginning) scan(r pgx.CollectableRow) (store.Task, error) {
	var fresh bool
	var since time.Time
	t, err := scanTask(r, &fresh, &since)
	if err == nil && fresh {
		b.latest[t.Kind] = since // they come in this order
	}
	return t, err
}

// ended notes what a claim has found.
func (s *claims) ended(b *beginning, answered bool) {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	if b.full {
		now := time.Now()
		s.next = now
		if answered {
			s.next = now.Add(max(s.pause, min(mostPause, 20*now.Sub(b.at))))
		}
	}
	for kind, since := range b.latest {
		if b.full || since.After(s.since[kind]) { // the clock may have been set back
			s.since[kind] = since
		}
	}
}
