package inspect

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
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
			stacks = append(stacks, symbols(numbers(addresses)))
		}
		_, addresses, _ = strings.Cut(line, " @ ")
	}
	return stacks
}

func numbers(addresses string) (pcs []uintptr) {
	for _, a := range strings.Fields(addresses) {
		if pc, err := strconv.ParseUint(a, 0, 64); err == nil {
			pcs = append(pcs, uintptr(pc))
		}
	}
	return pcs
}

func symbols(pcs []uintptr) (frames []runtime.Frame) {
	if len(pcs) == 0 {
		return nil
	}
	for all := runtime.CallersFrames(pcs); ; {
		frame, more := all.Next()
		frames = append(frames, frame)
		if !more {
			return frames
		}
	}
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

func contains(stack []runtime.Frame, prefix string) bool {
	for _, f := range stack {
		if strings.HasPrefix(f.Function, prefix) {
			return true
		}
	}
	return false
}

// actPath is the import path of package act.
var actPath = reflect.TypeFor[act.Task]().PkgPath()

// schedulerMethod is how the methods of a Scheduler begin.
var schedulerMethod = actPath + ".(*Scheduler)."

// below are packages that are never the culprit: the runtime, and packages that only pass a call on to the kernel.
var below = []string{
	"runtime", "internal", "sync", "syscall", "time", "os", "io", "iter", "golang.org/x/sys/unix", "reflect",
}

// ofTurn returns the part of the stack that belongs to the turn or the posted function: without the scheduler.
func ofTurn(frames []runtime.Frame) []runtime.Frame {
	for i, f := range frames {
		if strings.HasPrefix(f.Function, schedulerMethod) && i > 0 {
			return frames[:i]
		}
	}
	return frames
}

// culprit returns the index of the first frame that is neither below nor of package act; -1 if there is none.
func culprit(frames []runtime.Frame) int {
	for i, f := range frames {
		path := packageOf(f.Function)
		if path == actPath {
			continue
		}
		in := false
		for _, p := range below {
			in = in || path == p || strings.HasPrefix(path, p+"/")
		}
		if !in && f.Function != "" {
			return i
		}
	}
	return -1
}

// writer is culprit without the standard library, which computes for long only if its caller asks for it. If there is
// nothing else it is culprit.
func writer(frames []runtime.Frame) int {
	for i, f := range frames {
		if path := packageOf(f.Function); path != "" && path != actPath && path != "golang.org/x/sys/unix" && !standard(path) {
			return i
		}
	}
	return culprit(frames)
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
	if i := writer(frames); i >= 0 {
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
	waiting, preempted := false, false
	for i, f := range frames[:at] {
		for _, prefix := range collecting {
			if strings.HasPrefix(f.Function, prefix) {
				return collector, ""
			}
		}
		waiting = waiting || i == 0 && f.Function == "runtime.gopark"
		preempted = preempted || i == 0 && (f.Function == "runtime.Gosched" || strings.HasPrefix(f.Function, "runtime.asyncPreempt"))
	}
	switch {
	case waiting && at > 0:
		detail := frames[at-1].Function
		if said := waits[detail]; said != "" {
			detail = said
		}
		return parked, detail
	case preempted:
		return waitsForCPU, fmt.Sprintf("the Go runtime has no processor for it: GOMAXPROCS is %d", runtime.GOMAXPROCS(0))
	}
	return unknown, ""
}
