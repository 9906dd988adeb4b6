package act_test

import (
	"runtime"
	"testing"

	"github.com/daimon-go/daimon/internal/price"
)

func TestWhatThingsCost(t *testing.T) {
	for _, c := range costs {
		t.Run(c.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			price.Require(t, c.most, c.prepare(t))
		})
	}
}
