package stage_test

import (
	"testing"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/memory"
)

func BenchmarkEngine(b *testing.B) {
	enginetest.Benchmark(b, func(*testing.B) stage.Store { return memory.New(nil) })
}
