package inspect

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/act"
)

// A stack is had from the goroutine profile. That stops all goroutines for a moment, and takes what each of them is
// doing while they go on. For that each has to reach a safepoint: one that computes is interrupted, and one that is
// parked, or in a system call that the runtime knows of, has no processor. But a system call that was made by
// syscall.RawSyscall holds its processor, and would keep all other goroutines stopped until it returns. From outside
// the two kinds of calls look the same, so of a thread that is in a system call the call is named, and no stack is had.

// profiled returns the frames of the scheduler's turn, the innermost first, from the goroutine profile; nil if it has none.
func profiled(name string) []runtime.Frame {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return nil
	}
	return executed(labelled(all.String(), name))
}

// labelled returns the stacks in a profile whose goroutines have the label of the scheduler: its own, and the stacks of
// its coroutines and of goroutines that were started on it. A goroutine has a line of addresses and one of labels:
//
//	1 @ 0x43c3b1 0x44f0a5 0x489a21
//	# labels: {"scheduler":"0"}
//	#	0x489a20	main.work+0x40	main.go:12
func labelled(profile, name string) (stacks [][]runtime.Frame) {
	want := fmt.Sprintf("%q:%q", label, name)
	addresses := ""
	for line := range strings.Lines(profile) {
		if labels, ok := strings.CutPrefix(line, "# labels: "); ok && strings.Contains(labels, want) {
			stacks = append(stacks, symbols(addresses))
		}
		_, addresses, _ = strings.Cut(line, " @ ")
	}
	return stacks
}

func symbols(addresses string) (frames []runtime.Frame) {
	var pcs []uintptr
	for _, a := range strings.Fields(addresses) {
		if pc, err := strconv.ParseUint(a, 0, 64); err == nil {
			pcs = append(pcs, uintptr(pc))
		}
	}
	for all, more := runtime.CallersFrames(pcs), len(pcs) > 0; more; {
		var frame runtime.Frame
		frame, more = all.Next()
		frames = append(frames, frame)
	}
	return frames
}

// executed returns the stack that is being executed: that of the scheduler's goroutine, unless it has switched to a coroutine.
// All coroutines but the one that runs have switched, or have not begun.
func executed(stacks [][]runtime.Frame) []runtime.Frame {
	switched := false
	for _, stack := range stacks {
		if contains(stack, schedulerMethod) {
			if stack[0].Function != "runtime.coroswitch" {
				return stack
			}
			switched = true
		}
	}
	for _, stack := range stacks {
		first := stack[0].Function
		if switched && contains(stack, "runtime.corostart") && first != "runtime.coroswitch" && first != "runtime.corostart" {
			return stack
		}
	}
	return nil
}

func contains(stack []runtime.Frame, prefix string) bool { return firstWith(stack, prefix) >= 0 }

// firstWith returns the index of the first frame whose function begins with prefix, -1 if there is none.
func firstWith(stack []runtime.Frame, prefix string) int {
	return slices.IndexFunc(stack, func(f runtime.Frame) bool { return strings.HasPrefix(f.Function, prefix) })
}

// actPath is the import path of package act.
var actPath = reflect.TypeFor[act.Task]().PkgPath()

// schedulerMethod is how the methods of a Scheduler begin.
var schedulerMethod = actPath + ".(*Scheduler)."

// ofTurn returns the part of the stack that belongs to the turn or the posted function: without the scheduler.
func ofTurn(frames []runtime.Frame) []runtime.Frame {
	if i := firstWith(frames, schedulerMethod); i > 0 {
		return frames[:i]
	}
	return frames
}

// culprit returns the index of the innermost frame that is neither of the standard library nor of package act; -1 if there is
// none. The standard library computes for long, or waits, only if its caller asks for it.
func culprit(frames []runtime.Frame) int {
	return slices.IndexFunc(frames, func(f runtime.Frame) bool {
		path := packageOf(f.Function)
		return path != "" && path != actPath && path != "golang.org/x/sys/unix" && !standard(path)
	})
}

// standard reports whether the package with this path is of the standard library: its first part has no dot. Programs and
// their own modules may have such paths as well.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && path != "main" && path != mainModule && !strings.HasPrefix(path, mainModule+"/")
}

var mainModule = func() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path != "" {
		return info.Main.Path
	}
	return "main"
}()

// packageOf returns the import path in the name of a function: example.com/a/b of example.com/a/b.(*T).Method.func1.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + name
}

// place returns the file and the line, not with the directory in which the program was built, but with the path of the
// package; of the program's main package the file alone.
func place(f runtime.Frame) string {
	file := filepath.Base(f.File)
	if in := packageOf(f.Function); in != "" && in != "main" {
		file = in + "/" + file
	}
	return fmt.Sprintf("%s:%d", file, f.Line)
}

// write puts the stack into s.
func (s *stall) write(frames []runtime.Frame) {
	frames = ofTurn(frames)
	if i := culprit(frames); i >= 0 {
		s.Func, s.At = frames[i].Function, place(frames[i])
	}
	s.Stack = nil
	for _, f := range frames {
		s.Stack = append(s.Stack, f.Function+" "+place(f))
	}
}

// collecting are how functions of the collector begin that a goroutine calls for what it allocates, or by runtime.GC.
var collecting = []string{
	"runtime.gcAssist", "runtime.gcPark", "runtime.gcStart", "runtime.gcMark", "runtime.gcSweep", "runtime.GC",
	"runtime.deductSweepCredit", "runtime.sweepone", "runtime.bgsweep",
}

// waits are texts for functions that the compiler has put in place of a statement.
var waits = map[string]string{
	"runtime.chanrecv1": "a receive from a channel", "runtime.chanrecv2": "a receive from a channel",
	"runtime.chansend1": "a send to a channel", "runtime.selectgo": "a select", "runtime.block": "a select without cases",
}

// resting returns what the stack of a goroutine says of why it does not go on: Collector, Parked, WaitsForCPU if it was
// interrupted and has no processor of the runtime, else Unknown.
func resting(frames []runtime.Frame) (cause, string) {
	at := culprit(ofTurn(frames))
	if at < 0 {
		at = len(frames)
	}
	for _, prefix := range collecting {
		if contains(frames[:at], prefix) {
			return collector, ""
		}
	}
	if at == 0 {
		return unknown, ""
	}
	first := frames[0].Function
	switch {
	case first == "runtime.gopark":
		detail := frames[at-1].Function
		return parked, cmp.Or(waits[detail], detail)
	case first == "runtime.Gosched", strings.HasPrefix(first, "runtime.asyncPreempt"):
		return waitsForCPU, fmt.Sprintf("the Go runtime has no processor for it: GOMAXPROCS is %d", runtime.GOMAXPROCS(0))
	}
	return unknown, ""
}
