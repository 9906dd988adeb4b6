package storetest

import (
	"bytes"
	"context"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// beat renews a lease, and notes progress at a stage.
func (f *fixture) beat(l stage.Lease, at, data string) stage.Beat {
	f.t.Helper()
	beats, err := f.b.Heartbeat(f.ctx, []stage.Renewal{{Lease: l, Progress: stage.Progress{Stage: at, Data: []byte(data)}}}, length)
	f.NoError(err)
	f.Len(beats, 1)
	return beats[0]
}

// noted is t with progress.
func noted(t stage.Task, at, data string) stage.Task {
	t.ProgressStage, t.Progress = at, []byte(data)
	if data == "" {
		t.Progress = nil
	}
	return t
}

// testProgress follows the progress of one task along its chain.
func testProgress(f *fixture) {
	t, other := f.claimed("a"), f.claimed("b")
	f.Empty(t.Progress)
	f.Empty(t.ProgressStage)
	f.Equal(stage.Beat{Renewed: true}, f.beat(t.Lease(), working, "page 1"))
	t = noted(t, working, "page 1")
	f.same(t) // which has not changed otherwise
	f.same(other)
	f.Equal(stage.Beat{Renewed: true}, f.beat(t.Lease(), "ELSEWHERE", "of another stage"))
	f.same(t)
	f.Equal(stage.Beat{Renewed: true}, f.beat(t.Lease(), "", "of none"))
	f.same(t)
	beats, err := f.a.Heartbeat(f.ctx, renewals(other.Lease(), t.Lease()), length)
	f.NoError(err)
	f.Equal([]stage.Beat{{Renewed: true}, {Renewed: true}}, beats)
	f.same(t) // a heartbeat without progress keeps it
	f.beat(t.Lease(), working, "page 2")
	t = noted(t, working, "page 2")
	f.same(t)
	all, err := f.b.List(f.ctx, stage.Selection{Kind: "a"})
	f.NoError(err)
	f.Equal([]stage.Task{plain(t)}, []stage.Task{plain(all[0])})

	f.advance(length) // the worker is lost, and another goes on
	again := f.claim("a")
	f.Equal(working, again.ProgressStage)
	f.Equal("page 2", string(again.Progress))
	f.Equal(stage.Beat{Lost: true}, f.beat(t.Lease(), working, "of a lost worker"))
	f.same(again)
	f.ErrorIs(failure(f.b.Return(f.ctx, t.Lease(), stage.Return{
		Stage: created, Status: stage.Normal, Runs: true, Progress: stage.Progress{Stage: working, Data: []byte("of a lost worker")},
	})), stage.ErrLeaseLost)
	f.same(again)

	t = f.returned(again, stage.Return{
		Stage: created, Status: stage.Normal, Runs: true, Progress: stage.Progress{Stage: working, Data: []byte("page 3")},
	})
	f.Equal("page 3", string(t.Progress), "a Return keeps progress, of the stage that it leaves")
	f.Equal(working, t.ProgressStage)
	t = f.returned(f.claim("a"), stage.Return{
		Stage: created, Status: stage.Normal, Runs: true, Progress: stage.Progress{Stage: created, Data: []byte("of another stage")},
	})
	f.Equal("page 3", string(t.Progress))
	t = f.returned(f.claim("a"), failed)
	f.Equal("page 3", string(t.Progress), "one without progress keeps what there is")
	for _, request := range []func(stage.ID) (bool, error){f.suspend, f.resume} {
		f.yes(request(t.ID))
		f.Equal("page 3", string(f.get(t.ID).Progress))
	}

	t = f.claim("a")
	f.Error(f.a.Finish(f.ctx, t.Lease(), passage, func(context.Context, stage.Tx) error { return context.Canceled }))
	f.same(t)
	f.NoError(f.a.Finish(f.ctx, t.Lease(), passage, nil))
	f.Empty(f.get(t.ID).Progress, "a stage that has finished needs none")
	f.Empty(f.get(t.ID).ProgressStage)
	f.Equal(stage.Beat{Renewed: true}, f.beat(t.Lease(), working, "late"))
	f.Empty(f.get(t.ID).ProgressStage)
	t, err = f.a.Enter(f.ctx, t.Lease(), "ENDING", 0)
	f.NoError(err)
	f.Empty(t.ProgressStage)
	f.beat(t.Lease(), "ENDING", "nearly")
	f.NoError(f.a.Finish(f.ctx, t.Lease(), stage.Passage{From: "ENDING", To: "ENDED", Last: true},
		func(_ context.Context, tx stage.Tx) error {
			tx.SetData([]byte("result"))
			return nil
		}))
	t = f.get(t.ID)
	f.Empty(t.Progress)
	f.Empty(t.ProgressStage)
	f.Equal("result", string(t.Data))
}

// testProgressConditions sends progress of the present stage with the latest lease. It is kept exactly if the lease is good.
func testProgressConditions(f *fixture) {
	for _, row := range conditions {
		t := row.make(f, row.name)
		b := f.beat(t.Lease(), t.Stage, row.name)
		if !b.Lost {
			f.True(b.Renewed, row.name)
			t = noted(t, t.Stage, row.name)
			t.Due = f.get(t.ID).Due
		}
		f.same(t)

		t = row.make(f, row.name+", returned")
		_, err := f.b.Return(f.ctx, t.Lease(), stage.Return{
			Stage: created, Status: stage.Normal, Progress: stage.Progress{Stage: t.Stage, Data: []byte(row.name)},
		})
		if err != nil {
			f.ErrorIs(err, stage.ErrLeaseLost, row.name)
			f.same(t)
		} else {
			f.Equal(row.name, string(f.get(t.ID).Progress), "even if there is a request: %s", row.name)
			f.Equal(t.Stage, f.get(t.ID).ProgressStage)
		}
	}
}

// testProgressBytes has all kinds of bytes, which nobody else shares.
func testProgressBytes(f *fixture) {
	for _, data := range []string{"", "x", "\x00\xff", string(bytes.Repeat([]byte{0, 1, 2, 255}, stage.MaxProgress/4))} {
		t := f.claimed("a")
		p := stage.Progress{Stage: working, Data: []byte(data)}
		spoil := func() {
			for i := range p.Data {
				p.Data[i] = 'z'
			}
			p.Data = []byte(data)
		}
		_, err := f.a.Heartbeat(f.ctx, []stage.Renewal{{Lease: t.Lease(), Progress: p}}, time.Hour)
		f.NoError(err)
		spoil()
		got := f.get(t.ID)
		f.Equal(noted(t, working, data).Progress, got.Progress)
		f.Equal(working, got.ProgressStage)
		for i := range got.Progress {
			got.Progress[i] = 'y'
		}
		f.Equal(noted(t, working, data).Progress, f.get(t.ID).Progress)
		entered, err := f.b.Enter(f.ctx, t.Lease(), working, 1)
		f.NoError(err)
		f.Equal(noted(t, working, data).Progress, entered.Progress)
		t = f.returned(t, stage.Return{Stage: created, Status: stage.Normal, Progress: p})
		spoil()
		f.Equal(noted(t, working, data).Progress, f.get(t.ID).Progress)
	}
}
