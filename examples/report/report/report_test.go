package report_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/report/report"
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
