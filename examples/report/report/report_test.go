package report_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/report/report"
	"github.com/daimon-go/daimon/stage"
)

// A program that makes one report and prints what is in it.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	r, err := report.Create(ctx, filepath.Join(dir, "report.db"))
	if err != nil {
		panic(err)
	}
	defer r.Close()

	w := &report.Work{Reports: r, Files: []string{"testdata/rose.txt"}, Out: io.Discard}
	if err := act.Run(ctx, act.Config{Schedulers: 1}, w.Setup); err != nil {
		panic(err)
	}

	text, err := r.Text(ctx, 1)
	if err != nil {
		panic(err)
	}
	_, body, _ := strings.Cut(text, "\n\n") // what is before are the path and the date of the file
	fmt.Print(body)
	// Output:
	//         56 bytes
	//          2 lines
	//         12 words
	//          5 different words
	//
	// The most frequent words:
	//
	//          4  33.3 %  rose
	//          3  25.0 %  a
	//          3  25.0 %  is
	//          1   8.3 %  extreme
	//          1   8.3 %  loveliness
}

func create(t *testing.T) *report.Reports {
	r, err := report.Create(t.Context(), filepath.Join(t.TempDir(), "report.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// The work goes on while Out blocks.
func TestOutMayBlock(t *testing.T) {
	r := create(t)
	reads, writes := io.Pipe()
	w := &report.Work{Reports: r, Files: []string{"testdata/rose.txt"}, Out: writes}
	end := make(chan error, 1)
	go func() { end <- act.Run(t.Context(), act.Config{Schedulers: 1}, w.Setup) }()
	require.Eventually(t, func() bool {
		task, err := r.Store.Get(t.Context(), 1)
		return err == nil && task.Stage == "FINISHED"
	}, time.Minute, 10*time.Millisecond)
	require.Empty(t, end)

	said := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(reads)
		said <- string(all)
	}()
	require.NoError(t, <-end)
	require.NoError(t, w.Failure())
	require.NoError(t, w.Conclude(t.Context()))
	require.NoError(t, writes.Close())
	require.Equal(t, "1 testdata/rose.txt: added\n1 testdata/rose.txt: FINISHED\n1 finished\n", <-said)
}

// A cancelled context is an order to end.
func TestContextEndsWhileItStays(t *testing.T) {
	r := create(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		for task, err := r.Store.Get(ctx, 1); err != nil || task.Stage != "COUNTING_WORDS"; task, err = r.Store.Get(ctx, 1) {
			time.Sleep(time.Millisecond)
		}
	}()
	w := &report.Work{Reports: r, Files: []string{"testdata/rose.txt"}, Out: io.Discard, Stay: true, Pace: time.Minute}
	require.NoError(t, act.Run(ctx, act.Config{Schedulers: 1}, w.Setup))
	require.NoError(t, w.Conclude(t.Context()))
	task, err := r.Store.Get(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "CREATED", task.Stage)
	require.Equal(t, stage.Normal, task.Status)
	require.Zero(t, task.Attempt)
}

// A database that fails before a file is added ends the work.
func TestFailure(t *testing.T) {
	r := create(t)
	require.NoError(t, r.Close())
	var out strings.Builder
	w := &report.Work{Reports: r, Files: []string{"a", "b"}, Out: &out, Logger: zap.NewNop()}
	require.NoError(t, act.Run(t.Context(), act.Config{Schedulers: 1}, w.Setup))
	require.ErrorContains(t, w.Failure(), "database is closed")
	require.NoError(t, w.Conclude(t.Context()))
	require.Equal(t, "nothing to do\nnot added: 2, from a on\n", out.String())
}
