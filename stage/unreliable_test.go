package stage_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// unreliable is a store whose calls pass answer, with the name of the call and its argument. answer calls do, which
// makes the call, or does not, and returns do's error or another one that stands for an answer that is lost.
type unreliable struct {
	store.Store
	answer func(ctx context.Context, call string, arg any, do func() error) error
}

var errLost = errors.New("the answer is lost")

func answered[T any](ctx context.Context, u *unreliable, call string, arg any, f func() (T, error)) (none T, err error) {
	var got T
	err = u.answer(ctx, call, arg, func() (err error) {
		got, err = f()
		return err
	})
	if err != nil {
		return none, err
	}
	return got, nil
}

func (u *unreliable) Enqueue(ctx context.Context, tasks ...store.NewTask) ([]store.ID, error) {
	return answered(ctx, u, "Enqueue", tasks, func() ([]store.ID, error) { return u.Store.Enqueue(ctx, tasks...) })
}

func (u *unreliable) Tick(ctx context.Context, ticks ...store.Tick) (now time.Time, last []time.Time, err error) {
	last, err = answered(ctx, u, "Tick", ticks, func() (last []time.Time, err error) {
		now, last, err = u.Store.Tick(ctx, ticks...)
		return last, err
	})
	return now, last, err
}

func (u *unreliable) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	return answered(ctx, u, "Claim", c, func() ([]store.Task, error) { return u.Store.Claim(ctx, c) })
}

func (u *unreliable) Claimed(ctx context.Context, t store.Ticket) ([]store.Task, error) {
	return answered(ctx, u, "Claimed", t, func() ([]store.Task, error) { return u.Store.Claimed(ctx, t) })
}

func (u *unreliable) Enter(ctx context.Context, l store.Lease, at string, attempt int) (store.Task, error) {
	return answered(ctx, u, "Enter", l, func() (store.Task, error) { return u.Store.Enter(ctx, l, at, attempt) })
}

func (u *unreliable) Finish(ctx context.Context, l store.Lease, p store.Passage, c store.Commit) error {
	_, err := answered(ctx, u, "Finish", l, func() (struct{}, error) { return struct{}{}, u.Store.Finish(ctx, l, p, c) })
	return err
}

func (u *unreliable) Return(ctx context.Context, l store.Lease, r store.Return) (store.Status, error) {
	return answered(ctx, u, "Return", r, func() (store.Status, error) { return u.Store.Return(ctx, l, r) })
}

func (u *unreliable) Heartbeat(ctx context.Context, r []store.Renewal, d time.Duration) ([]error, error) {
	return answered(ctx, u, "Heartbeat", r, func() ([]error, error) { return u.Store.Heartbeat(ctx, r, d) })
}

func (u *unreliable) List(ctx context.Context, s store.Selection) ([]store.Task, error) {
	return answered(ctx, u, "List", s, func() ([]store.Task, error) { return u.Store.List(ctx, s) })
}

func (u *unreliable) SetPaused(ctx context.Context, kind string, paused bool) (bool, error) {
	return answered(ctx, u, "SetPaused", kind, func() (bool, error) { return u.Store.SetPaused(ctx, kind, paused) })
}

func (u *unreliable) Suspend(ctx context.Context, id store.ID) (bool, error) {
	return answered(ctx, u, "Suspend", id, func() (bool, error) { return u.Store.Suspend(ctx, id) })
}

func (u *unreliable) Resume(ctx context.Context, id store.ID, failed bool) (bool, error) {
	return answered(ctx, u, "Resume", id, func() (bool, error) { return u.Store.Resume(ctx, id, failed) })
}

func (u *unreliable) Cancel(ctx context.Context, id store.ID) (bool, error) {
	return answered(ctx, u, "Cancel", id, func() (bool, error) { return u.Store.Cancel(ctx, id) })
}

func (u *unreliable) Purge(ctx context.Context, s store.Status, age time.Duration, limit int) (int, error) {
	return answered(ctx, u, "Purge", fmt.Sprint(s, " ", age, " ", limit), func() (int, error) { return u.Store.Purge(ctx, s, age, limit) })
}

// hangs is an answer of a store that says nothing: it waits for the end of the context.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
