package stage_test

import (
	"context"
	"errors"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// unreliable is a store whose changes are made, or not, and answered, or not, as answer says: it calls do, or does not,
// and returns the error that stands for an answer that is lost.
type unreliable struct {
	stage.Store
	answer func(do func()) error
}

var errLost = errors.New("the answer is lost")

func mayBeLost[T any](u *unreliable, f func() (T, error)) (none T, err error) {
	var got T
	if lost := u.answer(func() { got, err = f() }); lost != nil {
		return none, lost
	}
	return got, err
}

func (u *unreliable) Enqueue(ctx context.Context, tasks ...stage.NewTask) ([]stage.ID, error) {
	return mayBeLost(u, func() ([]stage.ID, error) { return u.Store.Enqueue(ctx, tasks...) })
}

func (u *unreliable) Tick(ctx context.Context, ticks ...stage.Tick) (stage.Ticked, error) {
	return mayBeLost(u, func() (stage.Ticked, error) { return u.Store.Tick(ctx, ticks...) })
}

func (u *unreliable) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	return mayBeLost(u, func() ([]stage.Task, error) { return u.Store.Claim(ctx, c) })
}

func (u *unreliable) Claimed(ctx context.Context, t stage.Ticket) ([]stage.Task, error) {
	return mayBeLost(u, func() ([]stage.Task, error) { return u.Store.Claimed(ctx, t) })
}

func (u *unreliable) Enter(ctx context.Context, l stage.Lease, at string, attempt int) (stage.Task, error) {
	return mayBeLost(u, func() (stage.Task, error) { return u.Store.Enter(ctx, l, at, attempt) })
}

func (u *unreliable) Finish(ctx context.Context, l stage.Lease, p stage.Passage, c stage.Commit) error {
	_, err := mayBeLost(u, func() (struct{}, error) { return struct{}{}, u.Store.Finish(ctx, l, p, c) })
	return err
}

func (u *unreliable) Return(ctx context.Context, l stage.Lease, r stage.Return) (stage.Status, error) {
	return mayBeLost(u, func() (stage.Status, error) { return u.Store.Return(ctx, l, r) })
}

func (u *unreliable) Heartbeat(ctx context.Context, l []stage.Renewal, d time.Duration) ([]stage.Beat, error) {
	return mayBeLost(u, func() ([]stage.Beat, error) { return u.Store.Heartbeat(ctx, l, d) })
}

func (u *unreliable) List(ctx context.Context, s stage.Selection) ([]stage.Task, error) {
	return mayBeLost(u, func() ([]stage.Task, error) { return u.Store.List(ctx, s) })
}

func (u *unreliable) SetPaused(ctx context.Context, kind string, paused bool) (bool, error) {
	return mayBeLost(u, func() (bool, error) { return u.Store.SetPaused(ctx, kind, paused) })
}

func (u *unreliable) Suspend(ctx context.Context, id stage.ID) (bool, error) {
	return mayBeLost(u, func() (bool, error) { return u.Store.Suspend(ctx, id) })
}

func (u *unreliable) Resume(ctx context.Context, id stage.ID, failed bool) (bool, error) {
	return mayBeLost(u, func() (bool, error) { return u.Store.Resume(ctx, id, failed) })
}

func (u *unreliable) Cancel(ctx context.Context, id stage.ID) (bool, error) {
	return mayBeLost(u, func() (bool, error) { return u.Store.Cancel(ctx, id) })
}

func (u *unreliable) Purge(ctx context.Context, p stage.Purge) (int, error) {
	return mayBeLost(u, func() (int, error) { return u.Store.Purge(ctx, p) })
}
