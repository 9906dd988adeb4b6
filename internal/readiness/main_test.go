package readiness_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/testing/servertest"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}
