package admission_test

import (
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// A server on which each source may have 100 connections, and make 20 in a second, or 50 at once.
func ExampleLimiter() {
	limits := &admission.Limiter{Conns: 100, Rate: 20, Burst: 50}
	_ = &service.TCP{
		Address: ":7007",
		Filters: []listener.Filter{limits.Filter},
		Handler: greets,
	}
}
