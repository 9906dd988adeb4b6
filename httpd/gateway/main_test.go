package gateway

import (
	"testing"

	"github.com/daimon-go/daimon/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m) }
