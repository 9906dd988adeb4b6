package inspect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/act"
)

// A stack is had in one of two ways. The goroutine profile stops all goroutines for a moment, and takes what each of them
// is doing while they go on. For that each has to reach a safepoint: one that computes is interrupted, and one that is
// parked, or in a system call that the runtime knows of, has no processor. But a system call that was made by syscall.RawSyscall
// holds its processor, and would keep all other goroutines stopped until it returns. Therefore the stack of a thread that is
// in a system call is read in its memory, which the thread leaves as it is meanwhile.

// profiled returns the frames of the scheduler's turn, the innermost first, from the goroutine profile; nil if it has none.
func profiled(name string) []runtime.Frame {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return nil
	}
	return executed(labelled(all.String(), name))
}

// labelled returns the stacks in a profile whose goroutines have the label of the scheduler: its own, and those of its
// coroutines and of goroutines that were started on it. A goroutine has a line of addresses and one of labels:
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

const (
	window = 32 << 10 // of a stack that is read in memory
	inner  = 64       // words in which the first frame record is looked for
	depth  = 128      // frames
)

// unwound returns the frames of a thread that is blocked in the kernel, from its memory. It entered the kernel in a function
// without a frame, so the return address of that is at sp; but the caller has a frame, of unknown size. The other frames are a
// chain:
//
//	sp ─▶ return address
//	      …            the frame of the caller
//	   ┌─ address      ◀─ the first record
//	   │  return address
//	   └▶ address      …
//
// The first record is recognized by two things: its chain leads to the end of the stack, and before its return address there
// is a call of the function whose frame is below. What earlier calls have left in the frame looks like a chain as well, but
// they have called something else. What can be had without such a record is returned alone.
func unwound(mem io.ReaderAt, sp, pc uint64) []runtime.Frame {
	buf := make([]byte, window)
	n, _ := mem.ReadAt(buf, int64(sp)) // less at the end of the memory
	words := make([]uint64, n/8)
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(buf[8*i:])
	}
	fn := entry(pc)
	if fn == 0 || n == 0 {
		return nil // in C
	}
	pcs := []uintptr{uintptr(pc) + 1} // all others are return addresses, which are looked up less 1
	if called(mem, words[0], fn) {
		pcs = append(pcs, uintptr(words[0]))
		fn = entry(words[0])
	}
	for i := range min(inner, len(words)) {
		if chain := follow(words, sp, i); chain != nil && called(mem, uint64(chain[0]), fn) {
			return symbols(append(pcs, chain...))
		}
	}
	return symbols(pcs)
}

// called reports whether there is a call of the function fn before the return address, direct or by one jump, as from
// x/sys/unix to syscall. It knows amd64: E8 is a call and E9 a jump, to a distance from the next instruction.
func called(mem io.ReaderAt, back, fn uint64) bool {
	if runtime.GOARCH != "amd64" || !isCode(back) {
		return false
	}
	target := func(code byte, next uint64) uint64 {
		var b [5]byte
		if _, err := mem.ReadAt(b[:], int64(next)-5); err != nil || b[0] != code {
			return 0
		}
		return next + uint64(int64(int32(binary.LittleEndian.Uint32(b[1:]))))
	}
	to := target(0xe8, back)
	return to != 0 && (to == fn || target(0xe9, to+5) == fn)
}

// follow returns the return addresses of the chain of records that begins at words[i], nil if it is none.
func follow(words []uint64, sp uint64, i int) (pcs []uintptr) {
	for len(pcs) < depth && i+1 < len(words) {
		next, pc := words[i], words[i+1]
		if !isCode(pc) {
			return nil
		}
		pcs = append(pcs, uintptr(pc))
		if next == 0 {
			return pcs
		}
		at := (next - sp) / 8
		if next%8 != 0 || next < sp || at <= uint64(i) || at > 1<<20 {
			return nil
		}
		i = int(at)
	}
	if len(pcs) < 2 { // one could be by chance
		return nil
	}
	return pcs
}

func isCode(pc uint64) bool { return runtime.FuncForPC(uintptr(pc)) != nil }

// entry returns where the Go function at pc begins, 0 if there is none.
func entry(pc uint64) uint64 {
	if f := runtime.FuncForPC(uintptr(pc)); f != nil {
		return uint64(f.Entry())
	}
	return 0
}

// goFunction returns the name of the Go function at pc, "" if there is none.
func goFunction(pc uint64) string {
	if f := runtime.FuncForPC(uintptr(pc)); f != nil {
		return f.Name()
	}
	return ""
}

// actPath is the import path of package act.
var actPath = reflect.TypeFor[act.Task]().PkgPath()

// schedulerMethod is how the methods of a Scheduler begin.
var schedulerMethod = actPath + ".(*Scheduler)."

// below are packages in which nobody looks for the culprit: the runtime, and those that only pass a call on to the kernel.
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

// writer is culprit without the standard library: what it computes for long somebody has asked it to. If there is nothing
// else it is culprit.
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

// place returns the file and the line, not with the directory in which the program was built, but with the path of the package; of
// the program's main package the file alone.
func place(f runtime.Frame) string {
	file := filepath.Base(f.File)
	if in := packageOf(f.Function); in != "" && in != "main" {
		file = in + "/" + file
	}
	return fmt.Sprintf("%s:%d", file, f.Line)
}

// write puts the stack into s.
func (s *Stall) write(frames []runtime.Frame) {
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

// waits are what is said in place of functions that the compiler has put in place of a statement.
var waits = map[string]string{
	"runtime.chanrecv1": "a receive from a channel", "runtime.chanrecv2": "a receive from a channel",
	"runtime.chansend1": "a send to a channel", "runtime.selectgo": "a select", "runtime.block": "a select without cases",
}

// resting returns what the stack of a goroutine says of why it does not go on: Collector, Parked, WaitsForCPU if it was
// interrupted and has no processor of the runtime, else Unknown.
func resting(frames []runtime.Frame) (Cause, string) {
	at := culprit(ofTurn(frames))
	if at < 0 {
		at = len(frames)
	}
	parked, preempted := false, false
	for i, f := range frames[:at] {
		for _, prefix := range collecting {
			if strings.HasPrefix(f.Function, prefix) {
				return Collector, ""
			}
		}
		parked = parked || i == 0 && f.Function == "runtime.gopark"
		preempted = preempted || i == 0 && (f.Function == "runtime.Gosched" || strings.HasPrefix(f.Function, "runtime.asyncPreempt"))
	}
	switch {
	case parked && at > 0:
		detail := frames[at-1].Function
		if said := waits[detail]; said != "" {
			detail = said
		}
		return Parked, detail
	case preempted:
		return WaitsForCPU, fmt.Sprintf("the Go runtime has no processor for it: GOMAXPROCS is %d", runtime.GOMAXPROCS(0))
	}
	return Unknown, ""
}
