package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/report/report"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
)

// build adds files and makes reports.
func build(ctx context.Context, o *options) error {
	r, err := report.Create(ctx, o.db)
	if err != nil {
		return err
	}
	defer r.Close()
	log := logger()
	w := &report.Work{
		Reports: r, Files: o.files, Pace: o.pace, Stay: o.stay,
		Workers: o.workers, Attempts: o.attempts, Lease: o.lease, Logger: log, Out: o.out,
	}
	err = act.Run(ctx, act.Config{Schedulers: 1, Logger: log}, w.Setup, monitor.Signals(report.Terms))
	var cut *shutdown.Cut
	switch {
	case w.Failure() != nil:
		return w.Failure()
	case errors.As(err, &cut): // still an orderly end: another program goes on when the leases have ended
		fmt.Fprintln(os.Stderr, "report build:", cut)
		return nil
	case err != nil:
		return err
	}
	return w.Conclude(ctx)
}

// logger logs errors only, most of them of a database that does not answer. Warnings are about stages that fail and leases
// that are lost, and these are printed as progress.
func logger() *zap.Logger {
	encoding := zap.NewDevelopmentEncoderConfig()
	encoding.StacktraceKey = ""
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(os.Stderr), zapcore.ErrorLevel))
}

func list(ctx context.Context, o *options) error {
	return opened(ctx, o, func(r *report.Reports) error { return r.List(ctx, o.out) })
}

func show(ctx context.Context, o *options) error {
	return each(ctx, o, func(r *report.Reports, id stage.ID) error {
		text, err := r.Text(ctx, id)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(o.out, text)
		return err
	})
}

func suspend(ctx context.Context, o *options) error {
	return change(ctx, o, "suspended", stage.Suspension, stage.Store.Suspend)
}

func resume(ctx context.Context, o *options) error {
	return change(ctx, o, "resumed", stage.Nothing, func(s stage.Store, ctx context.Context, id stage.ID) (bool, error) {
		return s.Resume(ctx, id, o.failed)
	})
}

func cancel(ctx context.Context, o *options) error {
	return change(ctx, o, "cancelled", stage.Ending, stage.Store.Cancel)
}

// change asks for a change of each task and prints the result. If a program works on the task, the change takes place as
// soon as its worker has seen the request.
func change(ctx context.Context, o *options, done string, wanted stage.Wanted,
	ask func(stage.Store, context.Context, stage.ID) (bool, error)) error {
	return each(ctx, o, func(r *report.Reports, id stage.ID) error {
		changed, err := ask(r.Store, ctx, id)
		if err != nil {
			return err
		}
		t, err := r.Store.Get(ctx, id)
		switch {
		case err != nil:
			return err
		case changed && wanted != stage.Nothing && t.Wanted == wanted:
			fmt.Fprintf(o.out, "%d is going to be %s\n", id, done)
		case changed:
			fmt.Fprintf(o.out, "%d is %s\n", id, done)
		case wanted == stage.Nothing && t.Status == stage.Error:
			fmt.Fprintf(o.out, "%d is left as it is, since it has failed (see -failed): %s\n", id, report.Condition(&t))
		default:
			fmt.Fprintf(o.out, "%d is left as it is: %s\n", id, report.Condition(&t))
		}
		return nil
	})
}

// each calls f for every ID, even if f fails for some.
func each(ctx context.Context, o *options, f func(*report.Reports, stage.ID) error) error {
	return opened(ctx, o, func(r *report.Reports) error {
		var failed []error
		for _, id := range o.ids {
			failed = append(failed, f(r, id))
		}
		return errors.Join(failed...)
	})
}

// opened calls f with the database, which must exist.
func opened(ctx context.Context, o *options, f func(*report.Reports) error) error {
	r, err := report.Open(ctx, o.db)
	if err != nil {
		return err
	}
	defer r.Close()
	return f(r)
}

func schema(_ context.Context, o *options) error {
	_, err := fmt.Fprint(o.out, report.Schema())
	return err
}
