package inspect

import (
	"bytes"
	"runtime"
	"runtime/pprof"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

// A program that has a hash computed for long is named, and not the hash.
func TestTheCulpritHasAskedTheStandardLibrary(t *testing.T) {
	for _, row := range []struct {
		stack []string
		want  string
	}{
		{[]string{"crypto/internal/fips140/sha256.block", "crypto/sha256.Sum256", "main.thumbnail", actPath + ".Func.Act"}, "main.thumbnail"},
		{[]string{"sort.Slice", "example.com/a/b.(*T).sorted.func1", "main.serve"}, "example.com/a/b.(*T).sorted.func1"},
		{[]string{"syscall.RawSyscall6", "golang.org/x/sys/unix.Read", "example.com/a.read"}, "example.com/a.read"},
		{[]string{"regexp.(*Regexp).match", actPath + ".Func.Act"}, ""},
	} {
		var frames []runtime.Frame
		for _, f := range row.stack {
			frames = append(frames, runtime.Frame{Function: f, File: "x.go", Line: 1})
		}
		var s stall
		s.write(frames)
		require.Equal(t, row.want, s.Func)
	}
}

// What was broken: the pages' scheduler was started on the first one of the server, and had its label.
func TestTheStackOfTheFirstSchedulerIsNotThatOfThePages(t *testing.T) {
	x := &Inspector{Address: "127.0.0.1:0", Token: "secret", Watch: Watch{Limit: -1}}
	runs(t, x, act.Config{Schedulers: 1})
	stuck, free := make(chan struct{}), make(chan struct{})
	require.NoError(t, x.desks[0].probe.s.Post(func(*act.Scheduler) {
		close(stuck)
		<-free
	}))
	<-stuck
	defer close(free)
	var all bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&all, 1))
	n := 0
	for _, stack := range labelled(all.String(), x.desks[0].probe.name) {
		if contains(stack, schedulerMethod) {
			n++
		}
	}
	require.Equal(t, 1, n)
}
