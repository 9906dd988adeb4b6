package inspect

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
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
		{[]string{"regexp.(*Regexp).match", actPath + ".Func.Act"}, "regexp.(*Regexp).match"},
	} {
		var frames []runtime.Frame
		for _, f := range row.stack {
			frames = append(frames, runtime.Frame{Function: f, File: "x.go", Line: 1})
		}
		var s Stall
		s.write(frames)
		require.Equal(t, row.want, s.Func)
	}
}
