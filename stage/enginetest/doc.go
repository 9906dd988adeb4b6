// Package enginetest has the suite of what a stage.Engine promises, over any stage.Store.
//
//	func TestEngine(t *testing.T) {
//		enginetest.Run(t, func(*testing.T) stage.Store { return memory.New(nil) })
//	}
//
// Each test runs on plain goroutines and in a Group. Between its engines and the store stand a [tape], which writes
// down what a second reader sees after each transition, or a [gate], which holds calls up, fails them, and loses their
// answers. The clock is the real one, and nothing waits for it longer than it has to.
//
// The history of testdata/life.txt is the same for every store and every host:
//
//	go test ./stage -run TestEngine/life -update
package enginetest
