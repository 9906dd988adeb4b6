// Package enginetest has the test suite for what a stage.Engine promises over any stage.Store.
//
//	func TestEngine(t *testing.T) {
//		enginetest.Run(t, func(*testing.T) stage.Store { return memory.New(nil) })
//	}
//
// Each test runs on plain goroutines and in a Group, but see [Run]. A test may put a tape or a gate between its engines and
// the store. A tape records what a second reader sees after each transition. A gate delays calls, fails them, and loses
// their answers. The clock is the real one, so tests that measure time or let leases end run only with DAIMON_TESTS=full in
// the environment. [Benchmark] is for benchmarks, and on Unix systems Minute.
//
// The history in testdata/life.txt is the same for every store and every host:
//
//	go test ./stage -run TestEngine/life -update
package enginetest
