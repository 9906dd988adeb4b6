// Package enginetest has a test of engines over any store, and benchmarks. It is for the stores of this repository. The other tests
// of engines are those of package stage; what a store promises is tested by package storetest.
package enginetest
