package stage_test

import (
	"testing"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/enginetest"
	"github.com/daimon-go/daimon/stage/memory"
)

func TestEngine(t *testing.T) {
	enginetest.Run(t, func(*testing.T) stage.Store { return memory.New(nil) })
}
