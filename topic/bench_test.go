package topic

import (
	"fmt"
	"testing"

	"github.com/daimon-go/daimon/act"
)

// BenchmarkDeliver is a message to 1, 10 and 1,000 subscriptions of tasks on one scheduler, each of which takes it in a turn.
func BenchmarkDeliver(b *testing.B) {
	for _, n := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			broker := New(Config{})
			g := act.NewGroup(act.Config{Schedulers: 1})
			s := g.Schedulers()[0]
			_ = broker.Setup(s)
			got := 0
			for range n {
				var sub *Subscription
				s.Spawn(act.Func(func(t *act.Task) act.Directive {
					if sub == nil {
						sub = broker.Subscribe(t, Options{})
						_ = sub.Add("prices/gold")
					}
					for {
						_, err := sub.Take()
						if wait, ok := err.(act.Blocked); ok {
							wait.Arm(t)
							return act.Wait
						}
						got++
					}
				}))
			}
			_, _ = s.Step(10 * n)
			data := make([]byte, 100)
			b.ReportAllocs()
			for b.Loop() {
				if err := broker.Publish(Publication{Topic: "prices/gold", Data: data}); err != nil {
					b.Fatal(err)
				}
				want := got + n
				for got < want {
					_, _ = s.Step(1 << 12)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/delivery")
		})
	}
}
